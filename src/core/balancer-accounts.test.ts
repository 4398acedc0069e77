import { describe, expect, it } from "vitest";
import { engineSignals } from "../../test/support/engine-signals.ts";
import { type Balancer, createBalancer, type Observation } from "./balancer.ts";
import type { Outcome, Release, Routed } from "./decision.ts";
import { endpoint } from "./endpoint.ts";
import type { Lease } from "./ledger.ts";
import { type Random, seededRandom } from "./random.ts";
import { requestProfile } from "./request.ts";

describe("the accounts", () => {
  it.each(["least_delay", "token_aware", "round_robin"])(
    "equal the sum of the open leases over 100,000 events of every kind, under %s",
    (policy) => {
      const run = new RandomRun(policy, 3);
      for (let event = 0; event < 100_000; event++) run.step();
      expect(run.decisions).toBeGreaterThan(15_000);
      run.finishAll();
      run.checkAll();
    },
  );
});

const IDS = ["a", "b", "c", "d", "e", "f"];

/** Does one thing after another to a balancer, at random, and adds up what its accounts should hold. */
class RandomRun {
  readonly #random: Random;
  readonly #balancer: Balancer;
  /** Open leases by endpoint, those of endpoints that left included. */
  readonly #open = new Map<string, Set<Lease>>(IDS.map((id) => [id, new Set()]));
  readonly #closed: Lease[] = [];
  #nowMs = 0;
  decisions = 0;

  constructor(policy: string, seed: number) {
    this.#random = seededRandom(seed);
    this.#balancer = createBalancer({
      policy,
      endpoints: IDS.map((id) => endpoint({ id })),
      random: seededRandom(seed),
      holding: { maxRequests: 100, maxWaitMs: 5000 },
    });
  }

  step(): void {
    this.#nowMs += this.#below(20);
    const id = IDS[this.#below(IDS.length)] as string;
    const lease = this.#anyOpen(id);
    const kind = this.#below(1000);
    if (kind < 250) this.#decide();
    else if (kind < 400) this.#firstToken(lease);
    else if (kind < 650) this.#progress(lease);
    else if (kind < 930) this.#finish(lease);
    else if (kind < 950) this.#finish(this.#closed[this.#below(this.#closed.length)]);
    else if (kind < 970) this.#released(this.#balancer.tick(this.#nowMs));
    else this.#disturb(id);
    this.#check(id);
    if (this.#below(100) === 0) this.checkAll();
  }

  finishAll(): void {
    while (this.#balancer.heldRequests > 0 || IDS.some((id) => this.#leases(id).size > 0)) {
      for (const id of IDS) for (const lease of this.#leases(id)) this.#finish(lease);
    }
    this.#released(
      this.#balancer.setEndpoints(
        IDS.map((id) => endpoint({ id })),
        this.#nowMs,
      ),
    );
  }

  checkAll(): void {
    for (const id of IDS) this.#check(id);
  }

  #decide(): void {
    const kind = this.#below(10);
    const request = requestProfile({
      promptTokens: this.#below(5000) + this.#random.next(),
      expectedOutputTokens: kind === 0 ? 0 : this.#below(400),
      isStreaming: kind > 3,
      prefix: kind > 6 ? this.#prefix() : undefined,
    });
    const decision = this.#balancer.decide(request, this.#nowMs, this.#below(10) === 0 ? ["a", "b"] : []);
    if (decision.kind === "routed") this.#routed([decision]);
  }

  #released(releases: readonly Release[]): void {
    this.#routed(releases.map(({ decision }) => decision).filter((decision) => decision.kind === "routed"));
  }

  #routed(decisions: readonly Routed[]): void {
    this.decisions += decisions.length;
    for (const { endpoint, lease } of decisions) this.#leases(endpoint.id).add(lease);
    for (const { endpoint } of decisions) this.#check(endpoint.id);
  }

  #prefix() {
    const head = this.#below(20) * 1000;
    return { hashes: Array.from({ length: 1 + this.#below(30) }, (_, depth) => head + depth), tokensPerBlock: 64 };
  }

  #firstToken(lease: Lease | undefined): void {
    if (lease !== undefined) this.#released(this.#balancer.firstToken(lease, this.#nowMs));
  }

  #progress(lease: Lease | undefined): void {
    if (lease === undefined) return;
    this.#balancer.progress(lease, this.#below(40), this.#nowMs);
    expect(lease.remainingTokens).toBeGreaterThanOrEqual(lease.cost.decodeTokens === 0 ? 0 : 4);
  }

  #finish(lease: Lease | undefined): void {
    if (lease === undefined) return;
    const kind = (["completed", "failed", "aborted"] as const)[this.#below(3)] as Outcome["kind"];
    // Before its end releases others, whose accounts are checked.
    this.#leases(lease.endpointId).delete(lease);
    this.#released(this.#balancer.finish(lease, { kind, outputTokens: lease.generatedTokens }, this.#nowMs));
    if (this.#closed.length < 1000) this.#closed.push(lease);
  }

  #disturb(id: string): void {
    const kind = this.#below(6);
    if (kind === 0) this.#observe({ kind: "draining", endpointId: id, isDraining: this.#below(2) === 0 });
    else if (kind === 1) {
      const availability = (["ready", "ready", "down", "loading"] as const)[this.#below(4)] ?? "ready";
      this.#observe({ kind: "availability", endpointId: id, availability });
    } else if (kind === 2) {
      const signals = engineSignals({ kvCapacityTokens: 2000 + this.#below(100_000) });
      this.#observe({ kind: "signals", endpointId: id, signals });
    } else if (kind === 3) this.#observe({ kind: "restarted", endpointId: id });
    else if (kind === 4) this.#balancer.explain(requestProfile({ promptTokens: 100 }), this.#nowMs);
    else {
      const staying = IDS.filter(() => this.#below(4) > 0);
      const endpoints = staying.map((each) => endpoint({ id: each, url: `http://${each}/${this.#below(10)}` }));
      this.#released(this.#balancer.setEndpoints(endpoints, this.#nowMs));
    }
  }

  #observe(observation: Observation): void {
    this.#released(this.#balancer.observe(observation, this.#nowMs));
  }

  #check(id: string): void {
    const member = this.#balancer.members.find(({ endpoint: each }) => each.id === id);
    if (member === undefined) return;
    let [waiting, running, prefill, pairs, prompt, context, output] = [0, 0, 0, 0, 0, 0, 0];
    for (const lease of this.#leases(id)) {
      output += lease.remainingTokens;
      if (lease.isRunning) {
        running++;
        context += lease.cost.promptTokens + lease.generatedTokens;
      } else {
        waiting++;
        prefill += lease.cost.prefillTokens;
        pairs += lease.cost.prefillPairs;
        prompt += lease.cost.promptTokens;
      }
    }
    const { account } = member;
    const isEqual =
      account.requests === waiting + running &&
      account.waitingRequests === waiting &&
      account.runningRequests === running &&
      account.waitingPrefillTokens === prefill &&
      account.waitingPrefillPairs === pairs &&
      account.waitingPromptTokens === prompt &&
      account.contextTokens === context &&
      account.outputTokens === output;
    // `expect` on each of a million checks would take longer than all else.
    if (!isEqual) expect(account).toMatchObject({ requests: waiting + running, outputTokens: output });
    if (!isEqual) throw new Error(`the account of ${id} is not the sum of its leases`);
  }

  #leases(id: string): Set<Lease> {
    return this.#open.get(id) as Set<Lease>;
  }

  #anyOpen(id: string): Lease | undefined {
    const leases = this.#leases(id);
    const skipped = this.#below(leases.size);
    let position = 0;
    for (const lease of leases) if (position++ === skipped) return lease;
    return undefined;
  }

  #below(bound: number): number {
    return Math.floor(this.#random.next() * bound);
  }
}
