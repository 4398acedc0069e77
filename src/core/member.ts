import type { Account } from "./account.ts";
import { Breaker, type EjectionOptions } from "./breaker.ts";
import type { Endpoint, EngineSignals } from "./endpoint.ts";
import type { EngineCoefficients } from "./engine-coefficients.ts";
import { EngineSpeed } from "./engine-speed.ts";
import type { FirstBlocks } from "./first-blocks.ts";
import { type Availability, takesTraffic } from "./health.ts";
import type { HoldingLine } from "./holding-line.ts";
import { KvMirror } from "./kv-mirror.ts";
import type { Lease } from "./ledger.ts";
import type { Candidate, EvictionVisitor } from "./policy.ts";
import type { RequestProfile } from "./request.ts";
import type { ReuseOdds } from "./reuse-odds.ts";
import { SlowStart } from "./slow-start.ts";
import { SpeedObserver } from "./speed-observer.ts";
import type { SpeedPool } from "./speed-pool.ts";

/** One endpoint in its pool, with everything known and learned of it. */
export class Member implements Candidate {
  endpoint: Endpoint;
  readonly account: Account;
  readonly speed: EngineSpeed;
  readonly coefficients: EngineCoefficients;
  /** Learns `speed` from the requests that run there. */
  readonly observer: SpeedObserver;
  readonly mirror: KvMirror;
  /** Requests held for it. */
  held: HoldingLine;
  /** What its requests say of it: whether it is ejected. */
  readonly breaker: Breaker;
  readonly slowStart: SlowStart;
  #signals: EngineSignals | undefined;
  /** Of what is configured and reported, worked out once: every decision reads it of every endpoint. */
  #kvCapacityTokens: number | undefined;
  /** This and the next as they were reported last: a report that leaves one out does not change the cache. */
  #reportedKvCapacityTokens: number | undefined;
  #kvBlockTokens = KV_BLOCK_TOKENS;
  availability: Availability = "unknown";
  /** It refused a request for overload: until then others go first. */
  busyUntilMs: number = Number.NEGATIVE_INFINITY;
  /** Finishes what it has, takes nothing new. */
  isDraining = false;
  /** Undefined: not known yet, so it is tried with any model. */
  models: ReadonlySet<string> | undefined;

  constructor(endpoint: Endpoint, account: Account, shared: PoolKnowledge, held: HoldingLine) {
    this.endpoint = endpoint;
    this.#kvCapacityTokens = endpoint.kvCapacityTokens;
    this.account = account;
    this.speed = new EngineSpeed(shared.speeds, endpoint.tokensPerSecond);
    this.coefficients = this.speed.settledCoefficients;
    this.observer = new SpeedObserver(account, this.speed);
    this.mirror = new KvMirror(endpoint.kvCapacityTokens, shared.reuse, shared.firstBlocks);
    this.held = held;
    this.breaker = new Breaker(shared.ejection);
    this.slowStart = new SlowStart(shared.slowStartMs);
  }

  get signals(): EngineSignals | undefined {
    return this.#signals;
  }

  get kvCapacityTokens(): number | undefined {
    return this.#kvCapacityTokens;
  }

  get kvTokens(): number {
    const { contextTokens, waitingPromptTokens, requests } = this.account;
    // Half of each request's last block is empty, on the mean.
    const unfilledTokens = (requests * this.#kvBlockTokens) / 2;
    return contextTokens + waitingPromptTokens - this.mirror.sharedTokens + unfilledTokens;
  }

  get evictableKvTokens(): number {
    return this.mirror.evictableTokens;
  }

  /** When prefill whose end other balancers do not tell as it comes is believed to be done; undefined: there is none. */
  get untoldPrefillDueMs(): number | undefined {
    const { untoldPrefillTokens, untoldPrefillPairs, prefillSinceMs } = this.account;
    if (untoldPrefillTokens === 0) return undefined;
    return prefillSinceMs + this.speed.prefillMs(untoldPrefillTokens, untoldPrefillPairs);
  }

  /** Takes new requests, its breaker and its room aside. */
  get isUsable(): boolean {
    return this.endpoint.weight > 0 && !this.isDraining && takesTraffic(this.availability);
  }

  /** Neither ejected nor busy either. */
  isFreeAt(nowMs: number): boolean {
    return this.isUsable && nowMs >= this.busyUntilMs && this.breaker.admits(nowMs);
  }

  /** Whether only events can change if it takes requests: it is neither ejected, nor on trial, nor busy. */
  isSettledAt(nowMs: number): boolean {
    return !this.breaker.isOpen && nowMs >= this.busyUntilMs;
  }

  /**
   * When the passing of time alone next lets requests go there that could not, since it was busy, ejected or cold;
   * infinity: never.
   */
  returnsAtMs(nowMs: number): number {
    let atMs = Number.POSITIVE_INFINITY;
    for (const endMs of [this.busyUntilMs, this.breaker.admitsAtMs, this.slowStart.warmAtMs]) {
      if (endMs > nowMs) atMs = Math.min(atMs, endMs);
    }
    return atMs;
  }

  cachedTokens(request: RequestProfile): number {
    if (request.prefix === undefined) return 0;
    // An engine computes at least the last prompt token, whatever it holds.
    return Math.max(0, Math.min(this.mirror.matchedTokens(request.prefix), request.promptTokens - 1));
  }

  visitEvicted(tokens: number, nowMs: number, visit: EvictionVisitor): void {
    this.mirror.visitEvicted(tokens, this.kvTokens, nowMs, visit);
  }

  /** It is configured anew. */
  reconfigure(endpoint: Endpoint): void {
    this.endpoint = endpoint;
    this.speed.configure(endpoint.tokensPerSecond);
    this.#resize();
  }

  /** Its engine told how it is. */
  report(signals: EngineSignals): void {
    this.#signals = signals;
    this.#reportedKvCapacityTokens = signals.kvCapacityTokens ?? this.#reportedKvCapacityTokens;
    this.#kvBlockTokens = signals.kvBlockTokens ?? this.#kvBlockTokens;
    this.#resize();
  }

  /** Probes or requests found it in another state. Out of reach or loading, it comes back as an engine that begins anew. */
  becomes(availability: Availability, nowMs: number): void {
    if (availability === "down" || availability === "loading") this.mirror.clear();
    if (takesTraffic(availability) && !takesTraffic(this.availability)) {
      this.breaker.renew(nowMs);
      this.slowStart.begin(nowMs);
    }
    this.availability = availability;
  }

  /** Its engine's process is a new one, or dropped its prefix cache. */
  restarted(nowMs: number): void {
    this.mirror.clear();
    this.breaker.renew(nowMs);
  }

  /** It left its pool. */
  leave(): void {
    this.speed.leave();
    this.mirror.leavePool();
  }

  /** It came back to the pool that it had left, with all that was learned of it but its cache. */
  rejoin(): void {
    this.speed.rejoin();
    this.mirror.rejoinPool();
  }

  /** Takes on the rules that all have in common. */
  configure({ ejection, slowStartMs }: PoolKnowledge, nowMs: number): void {
    this.breaker.configure(ejection);
    this.slowStart.configure(slowStartMs, nowMs);
  }

  /** A request was answered well. True: it may take requests again by that. */
  succeeded(lease: Lease, nowMs: number): boolean {
    if (!this.breaker.succeeded(lease, nowMs)) return false;
    this.slowStart.begin(nowMs);
    return true;
  }

  /** It is ejected no more, though nothing good was heard of it. */
  readmit(nowMs: number): void {
    this.breaker.close(nowMs);
    this.slowStart.begin(nowMs);
  }

  /** Takes no requests for a while. An engine that fails one after the other is trusted with nothing it is believed to have. */
  eject(nowMs: number): void {
    this.breaker.open(nowMs);
    this.mirror.clear();
  }

  /**
   * A request was refused for overload. True: it is busy by that, and was not.
   * @param retryAfterMs When to come again; undefined: it was not told.
   */
  refused(lease: Lease, retryAfterMs: number | undefined, nowMs: number): boolean {
    this.breaker.dismissed(lease);
    const wasBusy = nowMs < this.busyUntilMs;
    const busyMs = Math.min(retryAfterMs ?? DEFAULT_BUSY_MS, MAX_BUSY_MS);
    this.busyUntilMs = Math.max(this.busyUntilMs, nowMs + busyMs);
    return !wasBusy;
  }

  #resize(): void {
    this.#kvCapacityTokens = this.endpoint.kvCapacityTokens ?? this.#reportedKvCapacityTokens;
    this.mirror.resize(this.#kvCapacityTokens);
  }
}

/** What the members of a pool learn together, and the rules they have in common. */
export interface PoolKnowledge {
  readonly speeds: SpeedPool;
  readonly reuse: ReuseOdds;
  readonly firstBlocks: FirstBlocks;
  readonly ejection: EjectionOptions;
  readonly slowStartMs: number | undefined;
}

/** The default of vLLM. */
const KV_BLOCK_TOKENS = 16;
/** Some decode steps: time for a place or two to become free. */
const DEFAULT_BUSY_MS = 1_000;
/** Who says more may mean a quota or a mistake. One refusal a minute is a fair price for finding out. */
const MAX_BUSY_MS = 60_000;
