import { describe, expect, it } from "vitest";
import {
  Balancer,
  endpoint,
  type Lease,
  policyDefinitions,
  type RequestProfile,
  requestProfile,
  seededRandom,
} from "../../src/core/index.ts";
import { routedNow } from "../support/decisions.ts";
import { engineSignals } from "../support/engine-signals.ts";
import { tally, times } from "../support/fleet.ts";

/** Policies that look at no load, or only at the capacity that is left. */
const DRAWS: readonly string[] = ["random", "weighted_random"];
/** Policies that go by turns alone. */
const TURNS: readonly string[] = ["round_robin", "weighted_round_robin"];

const names = policyDefinitions.map(({ name }) => name);
const followLoad = names.filter((name) => !DRAWS.includes(name) && !TURNS.includes(name));
/** These measure how fast an endpoint is. */
const measure = ["least_delay", "token_aware", "power_of_two"];

const chat = requestProfile({ promptTokens: 200, expectedOutputTokens: 20 });
const answer = requestProfile({ promptTokens: 1000, expectedOutputTokens: 300 });
const long = requestProfile({ promptTokens: 1000, expectedOutputTokens: 2000 });

function balancerOf(policy: string, ids: readonly string[], seed = 1): Balancer {
  return new Balancer({ policy, endpoints: ids.map((id) => endpoint({ id })), random: seededRandom(seed) });
}

/** Keeps a number of requests in flight, each streamed at its endpoint's pace, under virtual time. */
class Clients {
  readonly #balancer: Balancer;
  readonly #request: RequestProfile;
  readonly #tokens: number;
  readonly #inFlight: { readonly lease: Lease; readonly paceMs: number; nextMs: number; left: number }[] = [];
  #nowMs = 0;

  constructor(balancer: Balancer, request: RequestProfile) {
    this.#balancer = balancer;
    this.#request = request;
    this.#tokens = request.output.meanTokens;
  }

  /** Sends `requests`, `concurrency` at a time. @returns where they went, in order. */
  send(requests: number, concurrency: number, paceMs: Readonly<Record<string, number>>): string[] {
    const went: string[] = [];
    while (went.length < requests) {
      if (this.#inFlight.length >= concurrency) {
        this.#step();
        continue;
      }
      const { lease, endpoint: chosen } = routedNow(this.#balancer, this.#request, this.#nowMs);
      const pace = paceMs[chosen.id] ?? 0;
      this.#inFlight.push({ lease, paceMs: pace, nextMs: this.#nowMs + 2 * pace, left: this.#tokens });
      went.push(chosen.id);
    }
    return went;
  }

  #step(): void {
    const next = this.#inFlight.reduce((a, b) => (b.nextMs < a.nextMs ? b : a));
    this.#nowMs = next.nextMs;
    if (next.left === this.#tokens) this.#balancer.firstToken(next.lease, this.#nowMs);
    else this.#balancer.progress(next.lease, 1, this.#nowMs);
    next.left--;
    next.nextMs += next.paceMs;
    if (next.left > 0) return;
    this.#inFlight.splice(this.#inFlight.indexOf(next), 1);
    this.#balancer.finish(next.lease, { kind: "completed", outputTokens: this.#tokens }, this.#nowMs);
  }
}

describe.each(followLoad)("under %s", (policy) => {
  it("an endpoint that is ten times slower gets the fewest of many requests at once", () => {
    const clients = new Clients(balancerOf(policy, ["slow", "a", "b"]), chat);
    const counts = tally(clients.send(600, 40, { slow: 50, a: 5, b: 5 }), ["slow", "a", "b"]);
    expect(counts.slow).toBeLessThan(Math.min(counts.a ?? 0, counts.b ?? 0));
  });

  it("requests between two reports of the engines do not pile up on the one that looked emptier", () => {
    const balancer = balancerOf(policy, ["e1", "e2"]);
    const report = (endpointId: string, waitingRequests: number): void => {
      const signals = engineSignals({ runningRequests: 0, waitingRequests, observedAtMs: 0 });
      balancer.observe({ kind: "signals", endpointId, signals }, 0);
    };
    report("e1", 0);
    report("e2", 1);
    const counts = tally(
      times(8, (i) => {
        const { lease, endpoint: chosen } = routedNow(balancer, long, 10 * i);
        balancer.firstToken(lease, 10 * i + 5);
        return chosen.id;
      }),
      ["e1", "e2"],
    );
    for (const count of Object.values(counts)) expect(count).toBeGreaterThanOrEqual(3);
  });

  it("two balancers that know nothing of each other load the same endpoints evenly", () => {
    const ids = ["e1", "e2", "e3", "e4"];
    const replicas = [balancerOf(policy, ids, 1), balancerOf(policy, ids, 2)] as const;
    const counts = tally(
      times(100, (i) => {
        const balancer = replicas[i % 2 === 0 ? 0 : 1];
        const { lease, endpoint: chosen } = routedNow(balancer, long, i);
        balancer.firstToken(lease, i);
        return chosen.id;
      }),
      ids,
    );
    expect(Math.max(...Object.values(counts)) / Math.min(...Object.values(counts))).toBeLessThan(1.5);
  });
});

describe.each(measure)("under %s", (policy) => {
  it("endpoints that were once slow are tried again, and then no one keeps most of the traffic", () => {
    const clients = new Clients(balancerOf(policy, ["e1", "e2", "e3"]), answer);
    clients.send(30, 6, { e1: 10, e2: 50, e3: 50 });
    const isFast = { e1: 10, e2: 5, e3: 5 };
    // Some forty minutes: what was seen fades with what else is seen.
    expect(new Set(clients.send(5000, 6, isFast))).toEqual(new Set(["e1", "e2", "e3"]));
    for (const count of Object.values(tally(clients.send(300, 6, isFast)))) expect(count).toBeLessThan(0.6 * 300);
  });
});

/** A system prompt of 4,096 tokens in blocks of 64 that a quarter of the requests begin with; the others share nothing. */
function asked(n: number): RequestProfile {
  const head = n % 4 === 0 ? times(64, (depth) => depth + 1) : times(64, (depth) => 1e6 + 1000 * n + depth);
  return requestProfile({
    promptTokens: 4160,
    expectedOutputTokens: 100,
    prefix: { hashes: [...head, 1e9 + n], tokensPerBlock: 64 },
  });
}

describe("a beginning that many requests share", () => {
  it.each([200, 20])("makes no hot spot of %i endpoints with 30 requests in flight", (count) => {
    const ids = times(count, (i) => `e${i}`);
    const balancer = balancerOf("least_delay", ids);
    const inFlight: Lease[] = [];
    const common = new Set<string>();
    let most = 0;
    for (let n = 0; n < 2000; n++) {
      const nowMs = 10 * n;
      const { lease, endpoint: chosen } = routedNow(balancer, asked(n), nowMs);
      balancer.firstToken(lease, nowMs + 5);
      if (n % 4 === 0) common.add(chosen.id);
      inFlight.push(lease);
      most = Math.max(most, ...balancer.members.map(({ account }) => account.requests));
      const first = inFlight.length === 30 ? inFlight.shift() : undefined;
      if (first !== undefined) balancer.finish(first, { kind: "completed", outputTokens: 100 }, nowMs + 9);
    }
    expect(most).toBeLessThanOrEqual(Math.max(2, (1.25 * 30) / count) + 1);
    expect(common.size).toBeGreaterThan(1);
  });
});
