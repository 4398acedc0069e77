import type { FailoverConfig } from "../../runtime/index.ts";
import type { Failure } from "./failure.ts";
import type { RetryBudget } from "./retry-budget.ts";

/** Why a request that failed is not sent again. */
export type RetryDenial =
  /** As many endpoints were tried as may be. */
  | "attempts"
  /** As many endpoints as may have had the request have had it: it may be the request that kills or blocks them. */
  | "resends"
  /** Its client has stopped waiting. */
  | "patience"
  /** Whoever sent it here retries itself. */
  | "nested"
  /** It may have done its work, and doing it twice may not be the same as once. */
  | "unrepeatable"
  | "budget";

/** What bounds the retries of one request. */
export interface RetryBounds {
  readonly limits: FailoverConfig;
  readonly budget: RetryBudget;
  /** When its client stops waiting; infinity: never. */
  readonly patienceEndsAtMs: number;
  /** It came from a balancer that sends it elsewhere itself if it fails here. */
  readonly isNested: boolean;
  /** Whether doing it twice is the same as once (RFC 9110, 9.2.2), as it is for every kind of inference. */
  readonly isRepeatable: boolean;
}

/** Says, failure by failure, whether one request may be sent to another endpoint. */
export class Retries {
  readonly #bounds: RetryBounds;
  #begun = 0;
  /** Endpoints that had the request and lost it. */
  #losses = 0;
  /** Endpoints that had it for too long. */
  #waits = 0;

  constructor(bounds: RetryBounds) {
    this.#bounds = bounds;
  }

  /** Attempts so far. */
  get begun(): number {
    return this.#begun;
  }

  /** An attempt begins. */
  begin(nowMs: number): void {
    if (this.#begun === 0) this.#bounds.budget.deposit(nowMs);
    this.#begun++;
  }

  /** An attempt ended so. */
  failed(failure: Failure): void {
    if (failure === "lost") this.#losses++;
    if (failure === "slow") this.#waits++;
  }

  /** Whether there may be another attempt at all, for whatever reason. */
  mayBegin(nowMs: number): boolean {
    return this.#denialOfAny(nowMs) === undefined;
  }

  /**
   * Asks for a retry after an attempt that failed or is about to. A retry that is granted is taken from the budget.
   *
   * The budget never stands in the way of a request whose endpoint died on it: there is one endpoint's worth of them,
   * each goes to one other endpoint (`resends`), and nothing was wrong with any. What found no connection costs nobody
   * anything and is not counted at all.
   * @returns undefined: granted.
   */
  ask(failure: Failure, nowMs: number): RetryDenial | undefined {
    const denial = this.#denialOfAny(nowMs);
    if (denial !== undefined || failure === "unconnected") return denial;
    const { isNested, isRepeatable, limits, budget } = this.#bounds;
    if (isNested) return "nested";
    // Who is busy has not begun on it.
    if (!isRepeatable && failure !== "busy") return "unrepeatable";
    if (failure === "lost" && this.#losses > limits.resends) return "resends";
    if (failure === "slow" && this.#waits > limits.slowResends) return "resends";
    const share = { ratio: limits.budgetRatio, minPerSecond: limits.minRetriesPerSecond };
    if (failure !== "lost" && !budget.covers(share, nowMs)) return "budget";
    budget.withdraw(nowMs);
    return undefined;
  }

  #denialOfAny(nowMs: number): RetryDenial | undefined {
    const { limits, patienceEndsAtMs } = this.#bounds;
    if (this.#begun >= limits.attempts) return "attempts";
    return nowMs >= patienceEndsAtMs ? "patience" : undefined;
  }
}
