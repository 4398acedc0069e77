import type { Cost } from "./cost.ts";
import type { Outcome } from "./decision.ts";
import type { Tenant } from "./hold-order.ts";
import type { Stay } from "./kv-mirror.ts";
import type { Lease } from "./ledger.ts";
import type { Member } from "./member.ts";
import type { RequestProfile } from "./request.ts";
import type { Slotted } from "./slot-list.ts";
import type { DecodeTimer } from "./speed-observer.ts";

/**
 * A routed request from the opening of its lease to its end: moves the lease, and tells the endpoint's
 * speed observer first. Where its tokens are seen they move it; where they are not, `project` does.
 */
export class Flight implements Slotted {
  slot = -1;
  readonly request: RequestProfile;
  readonly lease: Lease;
  readonly member: Member;
  readonly #stay: Stay;
  /** Where its tokens are not seen: when the first is believed to be out. */
  readonly #firstTokenDueMs: number;
  /** Its number in what is told to other balancers; undefined: it is not told. */
  sharedAs: number | undefined;
  /** The engine got as far as the end of its prompt. */
  isComputed = false;
  /** Its decoding, being timed; undefined: not yet. */
  #timer: DecodeTimer | undefined;
  readonly #tenant: Tenant;
  /** What its tenant was told of it. */
  #chargedPromptTokens = 0;
  #chargedOutputTokens = 0;

  /** @param firstTokenDueMs As `firstTokenDueMs` had it before the lease was opened. */
  constructor(request: RequestProfile, lease: Lease, member: Member, firstTokenDueMs: number, tenant: Tenant) {
    this.request = request;
    this.lease = lease;
    this.member = member;
    this.#stay = member.mirror.enter(request.prefix, lease.cost.promptTokens, lease.openedAtMs);
    member.mirror.trim(member.kvTokens);
    this.#firstTokenDueMs = firstTokenDueMs;
    if (this.isUnseen) this.#timer = member.observer.decoding(lease.openedAtMs);
    this.#tenant = tenant;
    this.#charge(lease.cost.promptTokens, 0);
  }

  /** It generates tokens, and none is seen before the end. */
  get isUnseen(): boolean {
    return !this.request.isStreaming && this.request.output.meanTokens > 0;
  }

  /** Where its tokens are not seen: when its prefill will be believed to be done; undefined: it is. */
  get prefillDueMs(): number | undefined {
    return this.lease.isRunning ? undefined : this.#firstTokenDueMs;
  }

  firstToken(nowMs: number): void {
    if (this.lease.isRunning) return;
    const { observer } = this.member;
    observer.prefilled(this.lease, nowMs);
    this.lease.firstToken(nowMs);
    this.#timer ??= observer.decoding(nowMs);
    this.#chargeGenerated();
  }

  progress(tokens: number, nowMs: number): void {
    if (this.#timer === undefined || !this.lease.isRunning) return;
    if (!this.isUnseen) this.member.observer.decoded(this.#timer, tokens, nowMs);
    this.lease.progress(tokens, nowMs);
    this.#chargeGenerated();
  }

  /**
   * Moves a request whose tokens are not seen to where its endpoint's speed puts it by now. True: its prefill is
   * believed to be done by that.
   */
  project(nowMs: number): boolean {
    if (this.lease.isRunning) {
      this.#projectTokens(nowMs);
      return false;
    }
    if (nowMs < this.#firstTokenDueMs) return false;
    this.member.observer.prefillDone(this.lease.cost);
    this.lease.firstToken(this.#firstTokenDueMs);
    this.#projectTokens(nowMs);
    return true;
  }

  #projectTokens(nowMs: number): void {
    const { lease } = this;
    const { account, speed, observer } = this.member;
    const stepMs = speed.decodeStepMs(account.runningRequests, account.contextTokens);
    const left = (this.request.maxOutputTokens ?? Number.POSITIVE_INFINITY) - lease.generatedTokens;
    const tokens = Math.floor(Math.min(left, (nowMs - lease.lastProgressMs) / stepMs));
    if (this.#timer === undefined || tokens <= 0) return;
    observer.add(this.#timer, tokens);
    lease.progress(tokens, lease.lastProgressMs + tokens * stepMs);
    this.#chargeGenerated();
  }

  /** Learns what the end tells and closes the lease. */
  finish(outcome: Outcome, nowMs: number): void {
    const { observer } = this.member;
    if (this.isUnseen) {
      if (outcome.kind === "completed") this.#learnFromWhole(outcome.outputTokens ?? 0, nowMs);
    } else if (this.#timer !== undefined) {
      observer.decodingEnded(this.#timer);
    } else if (outcome.kind === "completed" && this.request.output.meanTokens === 0) {
      observer.prefilled(this.lease, nowMs);
    }
    const { isRunning, generatedTokens, cost } = this.lease;
    if (isRunning) observer.placeFreed(nowMs);
    this.lease.close(nowMs);
    const { mirror } = this.member;
    this.isComputed = isRunning || outcome.kind === "completed";
    // What the endpoint lost before it gave anything, nobody got.
    const isLost = outcome.kind === "failed" && (this.isUnseen || !isRunning);
    const { promptTokens = cost.promptTokens, outputTokens = generatedTokens } = outcome;
    this.#charge(isLost ? 0 : promptTokens, isLost ? 0 : outputTokens);
    mirror.leave(this.#stay, generatedTokens, this.isComputed, nowMs);
    mirror.trim(this.member.kvTokens);
  }

  #chargeGenerated(): void {
    this.#charge(this.#chargedPromptTokens, this.lease.generatedTokens);
  }

  /** What its tenant got by it so far. */
  #charge(promptTokens: number, outputTokens: number): void {
    this.#tenant.charge(promptTokens - this.#chargedPromptTokens, outputTokens - this.#chargedOutputTokens);
    this.#chargedPromptTokens = promptTokens;
    this.#chargedOutputTokens = outputTokens;
  }

  #learnFromWhole(outputTokens: number, nowMs: number): void {
    const { observer } = this.member;
    if (!this.lease.isRunning) observer.prefillDone(this.lease.cost);
    if (this.#timer !== undefined) observer.decodedUnseen(this.#timer, outputTokens, nowMs);
  }
}

/** When the first token of a request of `cost` will be out if it is sent to `member` now: after what waits there. */
export function firstTokenDueMs({ account, speed }: Member, cost: Cost, nowMs: number): number {
  const ownMs = speed.prefillMs(cost.prefillTokens, cost.prefillPairs);
  const aheadMs = speed.prefillMs(account.waitingPrefillTokens, account.waitingPrefillPairs);
  const backlogSinceMs = account.waitingRequests === 0 ? nowMs : account.prefillSinceMs;
  const stepMs = speed.decodeStepMs(account.runningRequests, account.contextTokens);
  return Math.max(nowMs, backlogSinceMs + aheadMs) + ownMs + stepMs;
}
