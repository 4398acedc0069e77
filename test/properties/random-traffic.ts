import {
  type Balancer,
  createBalancer,
  type Endpoint,
  endpoint,
  type HoldOrder,
  type Observation,
  type Outcome,
  type PolicyDefinition,
  type Random,
  type Release,
  type RequestProfile,
  type Routed,
  requestProfile,
  type SharedWork,
  seededRandom,
  type Ticket,
  unknownSignals,
} from "../../src/core/index.ts";
import { AccountOracle, OpenRequest } from "./account-oracle.ts";
import { Bag } from "./bag.ts";
import { randomEndpoint, randomRequest, randomShare } from "./random-work.ts";

/** Random traffic and faults for one balancer. */
export interface TrafficPlan {
  readonly policy: string | PolicyDefinition;
  readonly whenFull: "refuse" | "hold";
  /** Undefined: by the policy's key alone. */
  readonly order?: HoldOrder;
  readonly seed: number;
}

/** What was done to the balancer, and what it did. */
export interface TrafficCounts {
  requests: number;
  /** Things that happened, requests included; everything was checked after each. */
  steps: number;
  routed: number;
  refused: number;
  held: number;
  released: number;
  /** Held requests whose clients left. */
  left: number;
  /** Second attempts of requests that failed. */
  retried: number;
  /** Changes of what is known of endpoints and of who is in the pool. */
  disturbances: number;
}

/**
 * Does one thing after another to a balancer, at random and at random times: requests, tokens, ends of all kinds, ends
 * that come twice, endpoints that die, drain, restart, leave and come back, other balancers that tell of their work.
 * After each step the ledger must be the sum of what is open, and what is held what was held and not let go.
 */
export class RandomTraffic {
  readonly counts: TrafficCounts = {
    requests: 0,
    steps: 0,
    routed: 0,
    refused: 0,
    held: 0,
    released: 0,
    left: 0,
    retried: 0,
    disturbances: 0,
  };
  readonly #random: Random;
  readonly #balancer: Balancer;
  readonly #oracle = new AccountOracle();
  readonly #open = new Bag<OpenRequest>();
  readonly #unseen = new Set<OpenRequest>();
  readonly #held = new Set<Ticket>();
  /** Some that are over: a late event for one must change nothing. */
  readonly #over: OpenRequest[] = [];
  /** Numbers of the messages of other balancers. */
  readonly #sequences = new Map<string, number>();
  #nowMs = 0;

  constructor({ seed, ...balancing }: TrafficPlan) {
    this.#random = seededRandom(seed);
    this.#balancer = createBalancer({
      ...balancing,
      endpoints: WELL,
      random: seededRandom(seed + 1),
      holding: HOLDING,
      slowStartMs: 10_000,
    });
    for (const id of IDS) this.#tellBatch(id);
  }

  /** @throws with the step and what is wrong. */
  run(requests: number): void {
    try {
      for (const until = this.counts.requests + requests; this.counts.requests < until; ) {
        this.counts.steps++;
        this.#step();
        this.#check();
      }
    } catch (error) {
      throw new Error(`step ${this.counts.steps}: ${(error as Error).message}`, { cause: error });
    }
  }

  /** Lets everything end, and checks that nothing is left of it. */
  finish(): void {
    this.#setEndpoints(WELL);
    for (const from of OTHERS) this.#hear(from, undefined);
    for (let round = 0; this.#open.size > 0 || this.#held.size > 0; round++) {
      if (round === MAX_ROUNDS) throw new Error(`${this.#open.size} open and ${this.#held.size} held do not end`);
      for (const open of this.#open.items()) this.#end(open);
      for (const ticket of [...this.#held].slice(0, 3)) this.#leave(ticket);
      this.#nowMs += 1000;
      this.#tick();
      this.#check();
    }
    for (const { endpoint, account, held, kvTokens } of this.#balancer.members) {
      const left = [account.requests, account.outputTokens, account.contextTokens, held.requests, kvTokens];
      if (left.some((value) => value !== 0)) throw new Error(`${endpoint.id} is left with ${left.join(", ")}`);
    }
    for (const id of IDS) this.#expectOpen(id);
  }

  /** An endpoint that is well takes requests again, whatever it had been through: nothing keeps it shut for ever. */
  #expectOpen(id: string): void {
    this.#nowMs += LONGEST_EJECTION_MS;
    this.#observe({ kind: "availability", endpointId: id, availability: "ready" });
    this.#observe({ kind: "draining", endpointId: id, isDraining: false });
    this.#observe({ kind: "models", endpointId: id, models: undefined });
    const others = IDS.filter((other) => other !== id);
    const decision = this.#balancer.decide(requestProfile({ promptTokens: 100 }), this.#nowMs, others);
    if (decision.kind !== "routed") throw new Error(`${id} takes no requests any more: ${decision.explanation.reason}`);
    this.#balancer.finish(decision.lease, { kind: "completed" }, this.#nowMs);
  }

  #step(): void {
    this.#nowMs += this.#below(5000) === 0 ? this.#below(600_000) : this.#below(20);
    // Above that many the fleet has more than it can do: some must end before more come.
    const isFull = this.#open.size > MAX_OPEN;
    const kind = this.#below(1000);
    if (kind < 240) {
      if (isFull) this.#end(this.#anyOpen());
      else this.#send();
    } else if (kind < 440) this.#firstToken(this.#anyOpen());
    else if (kind < 660) this.#progress(this.#anyOpen());
    else if (kind < 900) this.#end(this.#anyOpen());
    else if (kind < 925) this.#lateEvent(this.#over[this.#below(this.#over.length)]);
    else if (kind < 950) this.#tick();
    else if (kind < 970) this.#leave(this.#anyHeld());
    else this.#disturb(IDS[this.#below(IDS.length)] as string);
  }

  #send(): void {
    this.counts.requests++;
    this.#decide(randomRequest(this.#random), this.#below(20) === 0 ? IDS.slice(0, 2) : []);
  }

  #decide(request: RequestProfile, tried: readonly string[]): void {
    const arrivedAtMs = this.#nowMs - (tried.length === 0 ? 0 : this.#below(3000));
    const decision = this.#balancer.decide(request, this.#nowMs, tried, this.#below(4000), arrivedAtMs);
    if (decision.kind === "held") {
      this.counts.held++;
      this.#held.add(decision.ticket);
      this.#released(decision.displaced);
    } else if (decision.kind === "refused") this.counts.refused++;
    else this.#opened(request, decision);
  }

  #opened(request: RequestProfile, { endpoint: { id }, lease }: Routed): void {
    this.counts.routed++;
    const open = new OpenRequest(request, lease, id);
    this.#open.add(open);
    if (open.isUnseen) this.#unseen.add(open);
    this.#oracle.opened(open);
  }

  /** Each ticket is let go once, by whatever event; a lost one would show at the end. */
  #released(releases: readonly Release[]): void {
    for (const { ticket, decision } of releases) {
      if (!this.#held.delete(ticket)) throw new Error("a request was let go that was not held");
      this.counts.released++;
      if (decision.kind === "routed") this.#opened(ticket.request, decision);
      else this.counts.refused++;
    }
  }

  #firstToken(open: OpenRequest | undefined): void {
    if (open === undefined) return;
    if (!open.isRunning) this.#oracle.moved(open, 1);
    this.#released(this.#balancer.firstToken(open.lease, this.#nowMs));
  }

  #progress(open: OpenRequest | undefined): void {
    if (open === undefined) return;
    const tokens = this.#below(40);
    if (open.isRunning) this.#oracle.moved(open, tokens);
    this.#balancer.progress(open.lease, tokens, this.#nowMs);
  }

  #end(open: OpenRequest | undefined): void {
    if (open === undefined) return;
    this.#open.remove(open);
    this.#unseen.delete(open);
    this.#oracle.ended(open);
    const { lease, request, endpointId } = open;
    const kind: Outcome["kind"] = this.#oneOf(["completed", "completed", "failed", "aborted"] as const);
    this.#judge(open, kind);
    const outputTokens = this.#below(3) === 0 ? undefined : this.#below(800);
    const outcome = { kind, outputTokens, promptTokens: Math.ceil(request.promptTokens) };
    this.#released(this.#balancer.finish(lease, outcome, this.#nowMs));
    this.#over[this.#below(100)] = open;
    if (kind !== "failed" || open.isRunning) return;
    this.counts.retried++;
    this.#decide(request, [endpointId]);
  }

  /** What its end says of the endpoint: mostly what it should, and of a few nothing is told. */
  #judge({ endpointId, lease }: OpenRequest, kind: Outcome["kind"]): void {
    if (this.#below(10) === 0) return;
    const said = this.#below(10);
    if (said === 0) this.#observe({ kind: "neutral", endpointId, lease });
    else if (said === 1) {
      const retryAfterMs = this.#below(2) === 0 ? undefined : this.#below(5000);
      this.#observe({ kind: "busy", endpointId, lease, retryAfterMs });
    } else if (kind !== "aborted") {
      this.#observe({ kind: kind === "completed" ? "succeeded" : "failed", endpointId, lease });
    }
  }

  #lateEvent(open: OpenRequest | undefined): void {
    if (open === undefined) return;
    const { lease, endpointId } = open;
    this.#observe({ kind: "failed", endpointId, lease });
    this.#released(this.#balancer.firstToken(lease, this.#nowMs));
    this.#balancer.progress(lease, 7, this.#nowMs);
    this.#released(this.#balancer.finish(lease, { kind: "completed", outputTokens: 9 }, this.#nowMs));
  }

  /** The balancer moves on the requests whose tokens are not seen; that is the one thing taken from it. */
  #tick(): void {
    const releases = this.#balancer.tick(this.#nowMs);
    for (const open of this.#unseen) {
      const { isRunning, generatedTokens } = open.lease;
      const tokens = generatedTokens - open.generatedTokens;
      if (tokens < 0 || (open.isRunning && !isRunning)) throw new Error("a request went back in its progress");
      if (isRunning) this.#oracle.moved(open, tokens);
    }
    this.#released(releases);
  }

  #leave(ticket: Ticket | undefined): void {
    if (ticket === undefined) return;
    this.counts.left++;
    this.#held.delete(ticket);
    this.#released(this.#balancer.leave(ticket, this.#nowMs));
    this.#released(this.#balancer.leave(ticket, this.#nowMs));
  }

  #disturb(id: string): void {
    this.counts.disturbances++;
    const kind = this.#below(12);
    if (kind === 0) this.#observe({ kind: "draining", endpointId: id, isDraining: this.#below(3) === 0 });
    else if (kind === 1) this.#changeMembers();
    else if (kind === 2) this.#observe({ kind: "restarted", endpointId: id });
    else if (kind === 3) this.#observe({ kind: "models", endpointId: id, models: this.#anyModels() });
    else if (kind === 4) this.#balancer.explain(requestProfile({ promptTokens: 100 }), this.#nowMs);
    else if (kind === 5) this.#tellBatch(id);
    else if (kind === 6) this.#hearOne(this.#anyOther());
    else if (kind === 7) this.#tellOthers();
    else if (kind === 8) this.#reconfigure();
    else {
      const availability = this.#oneOf([
        "ready",
        "ready",
        "ready",
        "down",
        "loading",
        "auth_failed",
        "unknown",
      ] as const);
      this.#observe({ kind: "availability", endpointId: id, availability });
    }
  }

  #tellOthers(): void {
    if (this.#below(4) === 0) this.#balancer.share(this.#nowMs);
    else this.#balancer.shareChanges(this.#nowMs);
  }

  /** Other bounds; seldom everybody who is held is let go. */
  #reconfigure(): void {
    if (this.#below(20) === 0) this.#released(this.#balancer.releaseAll("shutting_down", this.#nowMs));
    const holding = { ...HOLDING, maxRequests: this.#below(4) * 30, maxWaitMs: 1000 + this.#below(30_000) };
    const ejection = { failures: 1 + this.#below(5), baseMs: 1000 + this.#below(10_000) };
    this.#released(this.#balancer.reconfigure({ holding, ejection, slowStartMs: this.#below(20_000) }, this.#nowMs));
  }

  #observe(observation: Observation): void {
    this.#released(this.#balancer.observe(observation, this.#nowMs));
  }

  #tellBatch(endpointId: string): void {
    const signals = {
      ...unknownSignals(this.#nowMs),
      runningRequests: this.#below(40),
      kvCapacityTokens: 20_000 + this.#below(200_000),
    };
    this.#observe({ kind: "signals", endpointId, signals });
  }

  /** Who stays away altogether is as random as who comes back under another address. */
  #changeMembers(): void {
    const away = this.#below(20) === 0 ? IDS.length : this.#below(3);
    const staying = IDS.filter(() => this.#below(IDS.length) >= away);
    this.#setEndpoints(staying.map((id) => randomEndpoint(this.#random, id)));
  }

  #setEndpoints(endpoints: readonly Endpoint[]): void {
    const staying = new Set(endpoints.map(({ id }) => id));
    for (const { endpoint } of this.#balancer.members) if (!staying.has(endpoint.id)) this.#oracle.left(endpoint.id);
    this.#released(this.#balancer.setEndpoints(endpoints, this.#nowMs));
  }

  #hear(from: string, work: SharedWork | undefined): void {
    for (const { endpoint } of this.#balancer.members) {
      const share = work?.endpoints[endpoint.id];
      if (share !== undefined || work?.isWhole !== false) this.#oracle.told(endpoint.id, from, share?.account);
    }
    this.#released(this.#balancer.adopt(from, work, this.#nowMs));
  }

  /** One in five ends there, one in ten messages was lost on the way here. */
  #hearOne(from: string): void {
    const sequence = (this.#sequences.get(from) ?? 0) + (this.#below(10) === 0 ? 2 : 1);
    this.#sequences.set(from, sequence);
    this.#hear(from, this.#below(5) === 0 ? undefined : { sequence, ...randomShare(this.#random, IDS) });
  }

  #check(): void {
    for (const { endpoint, account } of this.#balancer.members) this.#oracle.check(endpoint.id, account);
    const { heldRequests, heldBytes, heldByPriority } = this.#balancer;
    if (heldRequests !== this.#held.size) throw new Error(`${heldRequests} are held, not ${this.#held.size}`);
    const { low, normal, high } = heldByPriority;
    if (low + normal + high !== heldRequests) throw new Error(`${low}, ${normal} and ${high} are held by priority`);
    if (heldRequests === 0 && heldBytes !== 0) throw new Error(`${heldBytes} bytes are held of nobody`);
  }

  #anyOpen(): OpenRequest | undefined {
    return this.#open.at(this.#below(this.#open.size));
  }

  #anyHeld(): Ticket | undefined {
    const skipped = this.#below(this.#held.size);
    let position = 0;
    for (const ticket of this.#held) if (position++ === skipped) return ticket;
    return undefined;
  }

  #anyOther(): string {
    return OTHERS[this.#below(OTHERS.length)] as string;
  }

  #anyModels(): ReadonlySet<string> | undefined {
    return this.#below(4) === 0 ? new Set(["another"]) : undefined;
  }

  #oneOf<Item>(items: readonly [Item, ...Item[]]): Item {
    return items[this.#below(items.length)] as Item;
  }

  #below(bound: number): number {
    return Math.floor(this.#random.next() * bound);
  }
}

const IDS: readonly string[] = ["a", "b", "c", "d", "e", "f", "g", "h"];
const WELL: readonly Endpoint[] = IDS.map((id) => endpoint({ id }));
const HOLDING = { maxRequests: 60, maxBytes: 100_000, maxWaitMs: 20_000, promoteAfterMs: 3000 };
/** The most that a breaker stays open is 300 s by default. */
const LONGEST_EJECTION_MS = 600_000;
const OTHERS: readonly string[] = ["balancer 2", "balancer 3"];
/** Some dozens on each endpoint: enough for full batches and lines in front of them. */
const MAX_OPEN = 250;
/** Each round ends all that is open and sends away some of those held, of which there are 60 at most. */
const MAX_ROUNDS = 100;
