import { describe, expect, it } from "vitest";
import { candidate } from "../../../test/support/candidate.ts";
import { Fleet, type FleetEndpoint, times } from "../../../test/support/fleet.ts";
import { costOf } from "../cost.ts";
import { DEFAULT_HOLDING_LIMITS } from "../holding.ts";
import { fixedOutput } from "../output-expectation.ts";
import { PrefixHasher } from "../prefix-hash.ts";
import { type RequestProfile, requestProfile } from "../request.ts";
import { leastDelay } from "./least-delay.ts";
import { leastDelayBinding } from "./least-delay-binding.ts";

const binding = leastDelayBinding(100);

/** Of an engine that tells of its batch: it serves in turn. */
const BATCHING = { runningRequests: 0 };

/** 21.1 ms of prefill by the prior. */
const chat = requestProfile({ promptTokens: 1000, expectedOutputTokens: 100 });
const CHAT_PREFILL_MS = 0.0207 * 1000 + 0.79e-6 * 500_000;
/** 191 ms. */
const longPrompt = requestProfile({ promptTokens: 8000, expectedOutputTokens: 100 });
const LONG_PREFILL_MS = 0.0207 * 8000 + 0.79e-6 * 32_000_000;

/** What an account says of this many chats that wait for their first token. */
function waitingChats(count: number) {
  const { prefillTokens, prefillPairs } = costOf(chat, 0);
  return {
    requests: count,
    waitingRequests: count,
    waitingPrefillTokens: count * prefillTokens,
    waitingPrefillPairs: count * prefillPairs,
  };
}

/** What it says of those of them that other balancers told, and whose ends they do not tell as they come. */
function ofOthers(count: number) {
  const { prefillTokens, prefillPairs } = costOf(chat, 0);
  return { untoldPrefillTokens: count * prefillTokens, untoldPrefillPairs: count * prefillPairs };
}

function fleetOf(facts: Omit<FleetEndpoint, "id"> = {}) {
  const fleet = new Fleet([{ id: "a", ...facts }]);
  fleet.reportBatches();
  return { fleet, a: fleet.candidate("a") };
}

describe("an endpoint can begin on a request", () => {
  it("at once where nothing tells that requests are served in turn, or where nothing is generated", () => {
    const account = waitingChats(50);
    const silent = candidate({ id: "a", account });
    const batching = candidate({ id: "a", account, signals: BATCHING });
    const embedding = requestProfile({ promptTokens: 1000, output: fixedOutput(0) });
    expect([silent, batching].map((at) => binding.canBegin(chat, at, 0))).toEqual([true, false]);
    expect(binding.canBegin(embedding, batching, 0)).toBe(true);
  });

  it("of any length when no prefill waits there, however much runs", () => {
    const { fleet, a } = fleetOf();
    times(50, () => fleet.run("a", chat));
    expect(binding.canBegin(longPrompt, a, 0)).toBe(true);
  });

  it("while what waits there and its own prefill make up 100 ms", () => {
    const { fleet, a } = fleetOf();
    times(3, () => fleet.send("a", chat));
    // 63 ms wait.
    expect(binding.canBegin(chat, a, 0)).toBe(true);
    expect(binding.canBegin(requestProfile({ promptTokens: 1700 }), a, 0)).toBe(true);
    expect(binding.canBegin(requestProfile({ promptTokens: 1750 }), a, 0)).toBe(false);
    fleet.send("a", chat);
    expect(binding.canBegin(chat, a, 0)).toBe(false);
  });

  it("after the first tokens of what waits there, however long they take", () => {
    const { fleet, a } = fleetOf();
    const [first] = times(4, () => fleet.send("a", chat));
    expect(binding.canBegin(chat, a, 60_000)).toBe(false);
    first?.firstToken(60_000);
    expect(binding.canBegin(chat, a, 60_000)).toBe(true);
  });

  it("after the time that takes what other balancers told, whose first tokens are not seen", () => {
    const a = candidate({
      id: "a",
      signals: BATCHING,
      account: { ...waitingChats(5), ...ofOthers(5), prefillSinceMs: 1000 },
    });
    const beginsAtMs = 1000 + 5 * CHAT_PREFILL_MS - (100 - CHAT_PREFILL_MS);
    expect(binding.canBegin(chat, a, 1000)).toBe(false);
    expect(binding.canBegin(chat, a, beginsAtMs - 0.01)).toBe(false);
    expect(binding.canBegin(chat, a, beginsAtMs + 0.01)).toBe(true);
    // Longer than 100 ms by itself: when nothing is left of the others.
    expect(binding.canBegin(longPrompt, a, 1000 + 4.99 * CHAT_PREFILL_MS)).toBe(false);
    expect(binding.canBegin(longPrompt, a, 1000 + 5.01 * CHAT_PREFILL_MS)).toBe(true);
  });

  it("while its own part of what waits there leaves room, when that of other balancers is over", () => {
    const begins = (own: number, others: number) => {
      const account = { ...waitingChats(own + others), ...ofOthers(others), prefillSinceMs: 0 };
      return binding.canBegin(chat, candidate({ id: "a", signals: BATCHING, account }), 60_000);
    };
    expect([begins(3, 2), begins(3, 50), begins(4, 2), begins(4, 50)]).toEqual([true, true, false, false]);
  });

  it("by what its cache leaves to compute", () => {
    const { fleet, a } = fleetOf();
    const conversation = withPrefix("once upon a time ".repeat(2000), 8000);
    fleet.run("a", conversation);
    fleet.send("a", chat);
    expect([binding.canBegin(conversation, a, 0), binding.canBegin(longPrompt, a, 0)]).toEqual([true, false]);
  });

  it("within what a declared time per output token allows", () => {
    const { fleet, a } = fleetOf();
    fleet.send("a", chat);
    expect(leastDelayBinding(50).canBegin(chat, a, 0)).toBe(true);
    expect(leastDelayBinding(40).canBegin(chat, a, 0)).toBe(false);
    const { lateBinding } = leastDelay.create(leastDelay.options.parse({ tpotTargetMs: 40 }));
    expect(lateBinding?.canBegin(chat, a, 0)).toBe(false);
  });

  it.each([
    { requests: 3, maxRunningRequests: 4, isFree: true },
    { requests: 4, maxRunningRequests: 4, isFree: false },
    { requests: 400, maxRunningRequests: undefined, isFree: true },
  ])("with $requests requests on $maxRunningRequests slots: $isFree", ({ requests, maxRunningRequests, isFree }) => {
    const engine = candidate({ id: "a", account: { requests }, signals: { maxRunningRequests } });
    expect([binding.fits(chat, engine), binding.canBegin(chat, engine, 0)]).toEqual([isFree, isFree]);
  });

  it("when its KV cache has room for the prompt and for what answers grow", () => {
    const { fleet, a } = fleetOf({ kvCapacityTokens: 10_000 });
    times(8, () => fleet.run("a", chat));
    // Each holds 1,001 tokens and half of its last block, and all nine have 892 to generate: 8,072 and a reserve of 298.
    const [largest, larger] = [1630, 1631].map((promptTokens) =>
      requestProfile({ promptTokens, expectedOutputTokens: 100 }),
    ) as [RequestProfile, RequestProfile];
    expect([binding.fits(largest, a), binding.canBegin(largest, a, 0)]).toEqual([true, true]);
    expect([binding.fits(larger, a), binding.canBegin(larger, a, 0)]).toEqual([false, false]);
    const talkative = { ...largest, output: fixedOutput(104) };
    expect([binding.fits(talkative, a), binding.canBegin(talkative, a, 0)]).toEqual([false, false]);
  });

  it("whose size of KV cache is not known", () => {
    const { fleet, a } = fleetOf();
    times(1000, () => fleet.run("a", longPrompt));
    expect([binding.fits(longPrompt, a), binding.canBegin(longPrompt, a, 0)]).toEqual([true, true]);
  });

  it("while a slot is free, where the engine says how many it has", () => {
    const { fleet, a } = fleetOf();
    fleet.report({ maxRunningRequests: 2 });
    fleet.run("a", chat);
    expect([binding.fits(chat, a), binding.canBegin(chat, a, 0)]).toEqual([true, true]);
    fleet.run("a", chat);
    expect([binding.fits(chat, a), binding.canBegin(chat, a, 0)]).toEqual([false, false]);
  });

  it("that is larger than its whole cache, when it has nothing else to do", () => {
    const { fleet, a } = fleetOf({ kvCapacityTokens: 4000 });
    expect(binding.canBegin(longPrompt, a, 0)).toBe(true);
    fleet.run("a", requestProfile({ promptTokens: 1 })).close(0);
    expect(binding.canBegin(longPrompt, a, 0)).toBe(true);
    fleet.run("a", requestProfile({ promptTokens: 1 }));
    expect(binding.canBegin(longPrompt, a, 0)).toBe(false);
  });
});

describe("the order of those held", () => {
  it("lets a request be overtaken by the longer the longer its prefill takes", () => {
    const { a } = fleetOf();
    const perMs = (binding.holdKey(chat, a, 5000) - 5000) / CHAT_PREFILL_MS;
    expect(perMs).toBeGreaterThan(10);
    expect(binding.holdKey(longPrompt, a, 7000)).toBeCloseTo(7000 + perMs * LONG_PREFILL_MS);
  });

  it("counts what is left to compute at the endpoint", () => {
    const { fleet, a } = fleetOf();
    const conversation = withPrefix("once upon a time ".repeat(2000), 8000);
    fleet.run("a", conversation);
    expect(binding.holdKey(conversation, a, 0)).toBeLessThan(0.1 * binding.holdKey(longPrompt, a, 0));
  });

  it("lets nobody be overtaken by whoever comes when it would be sent all the same", () => {
    const { a } = fleetOf();
    const endless = requestProfile({ promptTokens: 1_000_000 });
    const laterMs = DEFAULT_HOLDING_LIMITS.maxWaitMs;
    const brief = requestProfile({ promptTokens: 1 });
    expect(binding.holdKey(endless, a, 0)).toBeLessThan(binding.holdKey(brief, a, laterMs));
    expect(binding.holdKey(endless, a, 0)).toBeGreaterThan(binding.holdKey(brief, a, laterMs / 10));
  });
});

describe("least_delay", () => {
  it("binds late unless it is told not to", () => {
    expect(leastDelay.create(leastDelay.options.parse({})).lateBinding).toBeDefined();
    expect(leastDelay.create(leastDelay.options.parse({ lateBinding: false })).lateBinding).toBeUndefined();
  });
});

function withPrefix(text: string, promptTokens: number): RequestProfile {
  const hasher = new PrefixHasher(["model"]);
  hasher.update(text);
  return requestProfile({ promptTokens, expectedOutputTokens: 10, prefix: hasher.finish(promptTokens) });
}
