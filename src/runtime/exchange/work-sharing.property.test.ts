import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { times } from "../../../test/support/fleet.ts";
import { LossyNetwork, type NetworkFaults } from "../../../test/support/lossy-network.ts";
import {
  type AccountShare,
  Balancer,
  endpoint,
  engineCoefficients,
  type Lease,
  PRIOR_COEFFICIENTS,
  type Random,
  requestProfile,
  seededRandom,
} from "../../core/index.ts";
import { LiveBalancer } from "../live-balancer.ts";
import { createLog } from "../log.ts";
import { WorkSharing } from "./work-sharing.ts";

const ENDPOINTS = ["a", "b", "c"];
const TICK_MS = 10;
const log = createLog({ level: "silent", format: "json" });
const nobody = { bodyBytes: 0, released: () => undefined };

/** One gateway of several: it sends, sees tokens and ends as chance has it. */
class Gateway {
  readonly name: string;
  readonly balancer: LiveBalancer;
  readonly sharing: WorkSharing;
  readonly #random: Random;
  readonly #inFlight: Lease[] = [];

  constructor(name: string, network: LossyNetwork, clock: { nowMs(): number }, random: Random) {
    this.name = name;
    this.#random = random;
    const endpoints = ENDPOINTS.map((id) => endpoint({ id, kvCapacityTokens: 4000 }));
    this.balancer = new LiveBalancer(new Balancer({ endpoints, policy: "random", random }), clock);
    const pools = () => [{ name: "pool", balancer: this.balancer }];
    this.sharing = new WorkSharing({ exchange: network.join(name), clock, log, pools });
  }

  /** Something happens to one of its requests, or one more comes. */
  happen(nowMs: number): void {
    const at = Math.floor(this.#random.next() * (this.#inFlight.length + 1));
    const lease = this.#inFlight[at];
    const what = this.#random.next();
    if (lease === undefined) {
      const blocks = Math.floor(this.#random.next() * 5);
      const prefix = { hashes: times(blocks, (block) => block), tokensPerBlock: 64 };
      const request = requestProfile({ promptTokens: 100 + 64 * blocks, expectedOutputTokens: 20, prefix });
      const decision = this.balancer.decide(request, nowMs, [], nobody);
      if (decision.kind === "routed") this.#inFlight.push(decision.lease);
      this.sharing.keys.used("key", 1, request.promptTokens);
    } else if (what < 0.4) this.balancer.firstToken(lease, nowMs);
    else if (what < 0.7) this.balancer.progress(lease, 3, nowMs);
    else {
      this.balancer.finish(lease, { kind: what < 0.9 ? "completed" : "aborted" }, nowMs);
      this.#inFlight.splice(at, 1);
    }
  }

  /** Its own part, as it tells others; then all that it knows of. */
  own(nowMs: number): readonly Sums[] {
    return this.balancer.members.map(({ account }) => {
      const own = account.own(nowMs);
      return sumsOf(own, own.recentPrefillTokens);
    });
  }

  all(nowMs: number): readonly Sums[] {
    return this.balancer.members.map(({ account }) => sumsOf(account, account.recentPrefillMs(ONE_MS_A_TOKEN, nowMs)));
  }
}

const ONE_MS_A_TOKEN = engineCoefficients({ ...PRIOR_COEFFICIENTS, computeMs: 1, tokenMs: 0, pairMs: 0 });

type Sums = Readonly<Record<"requests" | "waiting" | "prefill" | "running" | "context" | "output" | "recent", number>>;

function sumsOf(account: Omit<AccountShare, `recent${string}` | "prefillMovedAgoMs">, recent: number): Sums {
  return {
    requests: account.requests,
    waiting: account.waitingRequests,
    prefill: account.waitingPrefillTokens,
    running: account.runningRequests,
    context: account.contextTokens,
    output: account.outputTokens,
    recent,
  };
}

/** Several of them on one network, in virtual time. */
class Cluster {
  readonly network: LossyNetwork;
  readonly gateways: Gateway[] = [];
  nowMs = 0;
  readonly #random: Random;

  constructor(seed: number, faults: NetworkFaults) {
    this.#random = seededRandom(seed);
    this.network = new LossyNetwork(this.#random, faults);
    for (const name of ["one", "two", "three"]) this.start(name);
  }

  start(name: string): void {
    const clock = { nowMs: () => this.nowMs };
    this.gateways.push(new Gateway(name, this.network, clock, seededRandom(Math.floor(this.#random.next() * 1e9))));
  }

  stop(name: string, isTold: boolean): void {
    this.gateways.splice(
      this.gateways.findIndex((gateway) => gateway.name === name),
      1,
    );
    this.network.cut(name, isTold);
  }

  run(ms: number, hasTraffic: boolean, look?: () => void): void {
    for (const untilMs = this.nowMs + ms; this.nowMs < untilMs; ) {
      this.nowMs += TICK_MS;
      this.network.moveTo(this.nowMs);
      for (const gateway of this.gateways) {
        if (hasTraffic) gateway.happen(this.nowMs);
        gateway.sharing.tick();
      }
      look?.();
    }
  }

  /** What there is in truth: everybody's own part together. */
  truth(): readonly Sums[] {
    const own = this.gateways.map((gateway) => gateway.own(this.nowMs));
    return ENDPOINTS.map((_, at) => own.map((all) => all[at] as Sums).reduce(added));
  }

  expectAllToKnowIt(): void {
    const truth = this.truth();
    for (const gateway of this.gateways) {
      for (const [at, { recent, ...known }] of gateway.all(this.nowMs).entries()) {
        const { recent: trulyRecent, ...exact } = truth[at] as Sums;
        expect(known).toEqual(exact);
        // It is as recent to the others as the message that told of it.
        expect(Math.abs(recent - trulyRecent)).toBeLessThanOrEqual(0.05 * trulyRecent + 1e-6);
      }
    }
  }
}

function added(one: Sums, other: Sums): Sums {
  return {
    requests: one.requests + other.requests,
    waiting: one.waiting + other.waiting,
    prefill: one.prefill + other.prefill,
    running: one.running + other.running,
    context: one.context + other.context,
    output: one.output + other.output,
    recent: one.recent + other.recent,
  };
}

const FAULTLESS: NetworkFaults = { loss: 0, duplication: 0, maxDelayMs: 1 };
const anyFaults: fc.Arbitrary<NetworkFaults> = fc.record({
  loss: fc.double({ min: 0, max: 0.6, noNaN: true }),
  duplication: fc.double({ min: 0, max: 0.5, noNaN: true }),
  maxDelayMs: fc.integer({ min: 1, max: 150 }),
});
const RUNS = { seed: 1, numRuns: 15 };

describe("several nodes on a network that loses, delays and repeats messages", () => {
  it("never believe in less than nothing, and in time all know what all have in flight", () => {
    fc.assert(
      fc.property(fc.nat(), anyFaults, (seed, faults) => {
        const cluster = new Cluster(seed, faults);
        cluster.run(1500, true, () => {
          for (const gateway of cluster.gateways) {
            for (const sums of gateway.all(cluster.nowMs)) {
              expect(Math.min(...Object.values(sums))).toBeGreaterThanOrEqual(0);
            }
          }
        });
        cluster.network.faults = FAULTLESS;
        cluster.run(1200, false);
        cluster.expectAllToKnowIt();
      }),
      RUNS,
    );
  });

  it("give up what a node had that is gone, told or not, and meet one that comes in its place", () => {
    fc.assert(
      fc.property(fc.nat(), anyFaults, fc.boolean(), fc.boolean(), (seed, faults, isTold, comesBack) => {
        const cluster = new Cluster(seed, faults);
        cluster.run(1000, true);
        cluster.stop("two", isTold);
        if (comesBack) cluster.start("two");
        cluster.run(1000, true);
        cluster.network.faults = FAULTLESS;
        cluster.run(2500, false);
        expect(cluster.gateways.map(({ sharing }) => sharing.peers.length)).toEqual(
          cluster.gateways.map(() => cluster.gateways.length - 1),
        );
        cluster.expectAllToKnowIt();
      }),
      RUNS,
    );
  });

  it("count what keys use elsewhere once, whatever was lost, as soon as they have met", () => {
    fc.assert(
      fc.property(fc.nat(), anyFaults, (seed, faults) => {
        const cluster = new Cluster(seed, FAULTLESS);
        const told = new Map<string, number>();
        for (const { name, sharing } of cluster.gateways) {
          sharing.keys.onUsedElsewhere((_, { tokens }) => told.set(name, (told.get(name) ?? 0) + tokens));
        }
        cluster.run(30, false);
        cluster.network.faults = faults;
        cluster.run(1000, true);
        cluster.network.faults = FAULTLESS;
        cluster.run(1200, false);
        const used = new Map(
          cluster.gateways.map(({ name, sharing }) => [name, sharing.keys.take("whole").get("key")?.tokens ?? 0]),
        );
        const total = [...used.values()].reduce((sum, tokens) => sum + tokens, 0);
        for (const [name, tokens] of used) expect(told.get(name)).toBe(total - tokens);
      }),
      RUNS,
    );
  });
});
