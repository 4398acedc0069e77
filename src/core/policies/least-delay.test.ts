import { describe, expect, it } from "vitest";
import { type CandidateFacts, candidatesOf } from "../../../test/support/candidate.ts";
import { Fleet, times } from "../../../test/support/fleet.ts";
import { policyContext } from "../../../test/support/policy-context.ts";
import { costOf } from "../cost.ts";
import { PrefixHasher } from "../prefix-hash.ts";
import { type RequestProfile, requestProfile } from "../request.ts";
import { leastDelay } from "./least-delay.ts";

const chat = requestProfile({ promptTokens: 1000, expectedOutputTokens: 100 });
const longPrompt = requestProfile({ promptTokens: 16_000, expectedOutputTokens: 100 });

/** Time of 1000 uncached prompt tokens by the prior: (computeMs + tokenMs) tokens + pairMs pairs. */
const CHAT_PREFILL_MS = 0.0207 * 1000 + 0.79e-6 * 500_000;

describe("least_delay", () => {
  it("prices an idle endpoint by the request's own prefill and decoding alone", () => {
    const terms = termsOf(new Fleet([{ id: "a" }]), "a", chat);
    expect(terms).toMatchObject({ stall: 0, slowdown: 0, queueBehind: 0, recompute: 0 });
    expect(terms.firstToken).toBeCloseTo(CHAT_PREFILL_MS + (1 + 1000 / 8192) * 1.5);
    const growMs = 43e-6 * 1050 + 0.0044 + 0.0033;
    expect(terms.decode).toBeCloseTo(0.3 * 100 * (1.5 + 5.7 + growMs));
  });

  it("prices what the request does to those that run and those that wait", () => {
    const fleet = new Fleet([{ id: "a" }]);
    times(10, () => fleet.run("a", chat));
    times(3, () => fleet.send("a", chat));
    const terms = termsOf(fleet, "a", chat);
    const growMs = 43e-6 * 1050 + 0.0044 + 0.0033 + (0.0174 * (13 * CHAT_PREFILL_MS)) / 10_000;
    expect(terms.stall).toBeCloseTo(0.08 * 10 * CHAT_PREFILL_MS);
    expect(terms.slowdown).toBeCloseTo(0.08 * 10 * 100 * growMs);
    expect(terms.queueBehind).toBeCloseTo(1.2 * 3 * CHAT_PREFILL_MS);
    const sharedMs = 1.5 + 43e-6 * 10 * 1001 + (0.0044 + 0.0033 + 0.0174) * 10;
    expect(terms.firstToken).toBeCloseTo(4 * CHAT_PREFILL_MS + (1 + 4000 / 8192) * sharedMs);
  });

  it("adds up to the score", () => {
    const fleet = new Fleet([{ id: "a" }, { id: "b" }]);
    times(5, () => fleet.run("a", chat));
    times(2, () => fleet.send("b", longPrompt));
    for (const { score, terms } of choose(fleet, chat).considered) {
      expect(score).toBeCloseTo(Object.values(terms ?? {}).reduce((sum, term) => sum + term, 0));
    }
  });

  it("counts the oldest prefill as it proceeds, but never as done", () => {
    const fleet = new Fleet([{ id: "a" }]);
    fleet.send("a", chat, 0);
    fleet.send("a", chat, 0);
    const wait = (nowMs: number) => termsOf(fleet, "a", chat, nowMs).firstToken as number;
    expect(wait(0) - wait(10)).toBeCloseTo(10);
    expect(wait(0) - wait(500)).toBeCloseTo(0.9 * CHAT_PREFILL_MS);
  });

  it("takes an endpoint whose prefill does not move for one that will not move for as long again", () => {
    const fleet = new Fleet([{ id: "a" }]);
    fleet.send("a", chat, 0);
    const wait = (nowMs: number) => termsOf(fleet, "a", chat, nowMs).firstToken as number;
    const patienceMs = 3 * 0.9 * CHAT_PREFILL_MS + 1000;
    expect(wait(patienceMs)).toBeCloseTo(wait(500));
    expect(wait(patienceMs + 5000) - wait(500)).toBeCloseTo(5000);
  });

  it("counts what other balancers told as done when there was time for it, all of it", () => {
    const waits = (own: number, others: number) => {
      const count = own + others;
      const account = {
        requests: count,
        waitingRequests: count,
        waitingPrefillTokens: count * 1000,
        waitingPrefillPairs: count * 500_000,
        othersPrefillTokens: others * 1000,
        othersPrefillPairs: others * 500_000,
        oldestWaiting: own === 0 ? undefined : costOf(chat, 0),
      };
      const wait = (nowMs: number) => termsAt({ id: "a", account }, chat, nowMs).firstToken as number;
      return [10, 500].map((nowMs) => wait(0) - wait(nowMs));
    };
    const [soon, late] = waits(0, 2);
    expect(soon).toBeCloseTo(10);
    expect(late).toBeCloseTo(2 * CHAT_PREFILL_MS);
    expect(waits(3, 2)[1]).toBeCloseTo((0.9 + 2) * CHAT_PREFILL_MS);
  });

  describe("memory", () => {
    /** Eight requests of 1,000 prompt tokens that have 100 to generate each, in a cache with room for 1,700 and a reserve. */
    const full: CandidateFacts = {
      id: "a",
      kvTokens: 8000,
      kvCapacityTokens: 10_000,
      account: { requests: 8, runningRequests: 8, contextTokens: 8000, outputTokens: 800 },
    };
    const stepMs = 1.5 + 5.7 + 43e-6 * 8000 + (0.0044 + 0.0033) * 8;
    /** In 100 steps all of them end, 8,000 tokens together. */
    const msPerToken = (100 * stepMs) / 8000;
    const memoryAt = (facts: CandidateFacts, promptTokens: number) =>
      termsAt(facts, requestProfile({ promptTokens, expectedOutputTokens: 100 })).memory;

    it("costs nothing while the prompt fits", () => {
      expect([memoryAt(full, 1), memoryAt(full, 1700)]).toEqual([0, 0]);
    });

    it("costs the time in which running requests free what is missing", () => {
      expect(memoryAt(full, 1701)).toBeCloseTo(msPerToken);
      expect(memoryAt(full, 5700)).toBeCloseTo(4000 * msPerToken);
    });

    it("costs the time for those that are held before it too", () => {
      const heldAhead = { prefillTokens: 1500, prefillPairs: 0 };
      expect(memoryAt({ ...full, heldAhead }, 200)).toBe(0);
      expect(memoryAt({ ...full, heldAhead }, 1200)).toBeCloseTo(1000 * msPerToken);
    });

    it("costs nothing where its size is unknown, or nothing runs that could free some", () => {
      const { kvCapacityTokens: _, ...unknown } = full;
      expect(memoryAt(unknown, 100_000)).toBe(0);
      expect(memoryAt({ id: "a", kvCapacityTokens: 10_000 }, 100_000)).toBe(0);
      expect(memoryAt({ ...full, account: { requests: 8, waitingRequests: 8, outputTokens: 800 } }, 100_000)).toBe(0);
    });

    it("is a reason to go where there is room, though others wait there", () => {
      const story = requestProfile({ promptTokens: 1000, expectedOutputTokens: 1000 });
      const chosen = (kvCapacityTokens: number) => {
        const fleet = new Fleet([
          { id: "idle line", kvCapacityTokens },
          { id: "room", kvCapacityTokens: 100_000 },
        ]);
        for (const id of ["idle line", "room"]) times(50, () => fleet.run(id, story));
        times(2, () => fleet.send("room", chat));
        return choose(fleet, chat).chosen.endpoint.id;
      };
      expect([chosen(100_000), chosen(51_000)]).toEqual(["idle line", "room"]);
    });
  });

  it("prefers the endpoint that has the prompt cached, and charges others the recomputation", () => {
    const fleet = new Fleet([{ id: "cold" }, { id: "warm" }]);
    const conversation = withPrefix("once upon a time ".repeat(1024), 4096);
    fleet.run("warm", conversation).close(0);
    const { chosen, considered } = choose(fleet, conversation, 60_000);
    expect(chosen.endpoint.id).toBe("warm");
    const [cold, warm] = considered.map(({ terms }) => terms ?? {});
    expect(warm?.recompute).toBe(0);
    expect(cold?.recompute).toBeGreaterThan(2 * 0.0207 * 4000);
  });

  it("leaves a warm endpoint when the wait there costs more than the recomputation", () => {
    const fleet = new Fleet([{ id: "cold" }, { id: "warm" }]);
    const conversation = withPrefix("once upon a time ".repeat(1024), 4096);
    fleet.run("warm", conversation).close(0);
    times(4, () => fleet.send("warm", longPrompt));
    expect(choose(fleet, conversation).chosen.endpoint.id).toBe("cold");
  });

  it("sends a long prompt to where fewer requests would stand still, although its queue is longer", () => {
    const fleet = new Fleet([
      { id: "many", kvCapacityTokens: 467_000 },
      { id: "few", kvCapacityTokens: 467_000 },
    ]);
    times(60, () => fleet.run("many", chat));
    fleet.send("few", longPrompt);
    expect(choose(fleet, longPrompt).chosen.endpoint.id).toBe("few");
  });

  it("prefers the faster endpoint until its load outweighs its speed", () => {
    const fleet = new Fleet([{ id: "slow" }, { id: "fast" }]);
    const step = { tokens: 1, sequences: 1, contextTokens: 1000, prefillTokens: 0, prefillPairs: 0, prefillSteps: 0 };
    times(20, () => fleet.candidate("slow").speed.observeDecode(step, 4 * 7.25));
    times(20, () => fleet.candidate("fast").speed.observeDecode(step, 7.25));
    expect(choose(fleet, chat).chosen.endpoint.id).toBe("fast");
    times(400, () => fleet.run("fast", chat));
    expect(choose(fleet, chat).chosen.endpoint.id).toBe("slow");
  });

  it("expects prefill to stall decoding where much was sent lately", () => {
    const fleet = new Fleet([{ id: "prefilling" }, { id: "decoding" }]);
    for (const nowMs of [0, 1000, 2000]) fleet.run("prefilling", longPrompt, nowMs).close(nowMs);
    const decode = (id: string) => termsOf(fleet, id, chat, 2000).decode as number;
    expect(decode("prefilling")).toBeGreaterThan(1.05 * decode("decoding"));
    expect(choose(fleet, chat, 2000).chosen.endpoint.id).toBe("decoding");
  });

  it("never expects prefill to take an endpoint's whole time", () => {
    const fleet = new Fleet([{ id: "a" }]);
    times(100, () => fleet.run("a", longPrompt).close(0));
    const growMs = 43e-6 * 1050 + 0.0044 + 0.0033 + 0.0174 * 0.8;
    expect(termsOf(fleet, "a", chat).decode).toBeCloseTo(0.3 * 100 * (7.2 * (1 + (0.6 * 0.8) / 0.2) + growMs));
  });

  describe("sparing running requests", () => {
    it.each([
      { why: "whole while the KV cache is at most 60 % full", kvCapacityTokens: 20_000, weight: 1 },
      { why: "half at 75 %", kvCapacityTokens: (10 * (1001 + 8)) / 0.75, weight: 0.5 },
      { why: "none from 90 % on", kvCapacityTokens: 11_200, weight: 0 },
      { why: "whole where the KV cache is unknown", kvCapacityTokens: undefined, weight: 1 },
    ])("is $why", ({ kvCapacityTokens, weight }) => {
      const fleet = new Fleet([{ id: "a", kvCapacityTokens }]);
      times(10, () => fleet.run("a", chat));
      expect(termsOf(fleet, "a", chat).stall).toBeCloseTo(0.08 * weight * 10 * CHAT_PREFILL_MS);
    });

    it("counts the prompts of waiting requests as KV that will be in use", () => {
      const fleet = new Fleet([{ id: "a", kvCapacityTokens: 2250 }]);
      fleet.run("a", chat);
      fleet.send("a", chat);
      // 2001 of 2250 tokens, and half of the last block of each, are nearly 90 %: hardly any of it is left.
      expect(termsOf(fleet, "a", chat).stall).toBeCloseTo(((0.08 * (0.9 - 2017 / 2250)) / 0.3) * CHAT_PREFILL_MS);
    });

    it("ends when decode batches are large enough to be bound by compute", () => {
      const fleet = new Fleet([{ id: "a" }]);
      times(330, () => fleet.run("a", chat));
      const { stall, slowdown } = termsOf(fleet, "a", chat);
      expect([stall, slowdown]).toEqual([0, 0]);
    });
  });

  it("counts the request's own compute in each step once decode batches are bound by compute", () => {
    const fleet = new Fleet([{ id: "a" }]);
    times(330, () => fleet.run("a", chat));
    const stepMs = 1.5 + 0.0174 * 330 + 43e-6 * 330 * 1001 + (0.0044 + 0.0033) * 330;
    const growMs = 43e-6 * 1050 + 0.0044 + 0.0033 + 0.0174;
    expect(termsOf(fleet, "a", chat).decode).toBeCloseTo(0.3 * 100 * (stepMs + growMs));
  });

  it("prices a request without output by its prefill alone", () => {
    const fleet = new Fleet([{ id: "a" }]);
    times(4, () => fleet.run("a", chat));
    const { decode, slowdown, stall } = termsOf(
      fleet,
      "a",
      requestProfile({ promptTokens: 1000, expectedOutputTokens: 0 }),
    );
    expect([decode, slowdown]).toEqual([0, 0]);
    expect(stall).toBeGreaterThan(0);
  });
});

function choose(fleet: Fleet, request: RequestProfile, nowMs = 0) {
  return leastDelay.create({}).choose(request, fleet.candidates, policyContext({ nowMs }));
}

function termsOf(fleet: Fleet, id: string, request: RequestProfile, nowMs = 0): Readonly<Record<string, number>> {
  return choose(fleet, request, nowMs).considered.find(({ endpoint }) => endpoint === id)?.terms ?? {};
}

function termsAt(facts: CandidateFacts, request: RequestProfile, nowMs = 0): Readonly<Record<string, number>> {
  const { considered } = leastDelay.create({}).choose(request, candidatesOf(facts), policyContext({ nowMs }));
  return considered[0]?.terms ?? {};
}

function withPrefix(text: string, promptTokens: number): RequestProfile {
  const hasher = new PrefixHasher(["model"]);
  hasher.update(text);
  return requestProfile({ promptTokens, expectedOutputTokens: 10, prefix: hasher.finish(promptTokens) });
}
