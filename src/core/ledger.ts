import { type Account, MutableAccount, RECENT_PREFILL_MS } from "./account.ts";
import type { Cost } from "./cost.ts";
import { Fading } from "./fading.ts";
import type { OutputExpectation } from "./output-expectation.ts";
import type { AccountShare } from "./shared-work.ts";

type Phase = "waiting" | "running" | "closed";

/** One request's hold on an endpoint's account. Whatever ends the request closes it, exactly once. */
export class Lease {
  readonly endpointId: string;
  readonly cost: Cost;
  readonly openedAtMs: number;
  /** For whoever opened it: what belongs to it there. The ledger does not look at it. */
  holder: object | undefined;
  /** For the endpoint's breaker: the generation it began in. Undefined: none, its result is told or not wanted. */
  generation: object | undefined;
  /** For the endpoint's breaker: it was told to have been answered well. */
  isProven = false;
  readonly #account: MutableAccount;
  readonly #output: OutputExpectation;
  readonly #closed: () => void;
  #phase: Phase = "waiting";
  #generatedTokens = 0;
  #remainingTokens: number;
  #firstTokenAtMs: number | undefined;
  #lastProgressMs: number;

  constructor(
    endpointId: string,
    account: MutableAccount,
    cost: Cost,
    output: OutputExpectation,
    nowMs: number,
    closed: () => void,
  ) {
    this.endpointId = endpointId;
    this.cost = cost;
    this.openedAtMs = nowMs;
    this.#account = account;
    this.#output = output;
    this.#closed = closed;
    this.#remainingTokens = cost.decodeTokens;
    this.#lastProgressMs = nowMs;
    account.addWaiting(this);
  }

  get isOpen(): boolean {
    return this.#phase !== "closed";
  }

  get isRunning(): boolean {
    return this.#phase === "running";
  }

  get generatedTokens(): number {
    return this.#generatedTokens;
  }

  /** Output tokens still expected. */
  get remainingTokens(): number {
    return this.isOpen ? this.#remainingTokens : 0;
  }

  /** Undefined: no token yet. */
  get firstTokenAtMs(): number | undefined {
    return this.#firstTokenAtMs;
  }

  /** Time of the opening, the first token or the last progress, whichever came last. */
  get lastProgressMs(): number {
    return this.#lastProgressMs;
  }

  /** Prefill is done: its work leaves the account, its prompt becomes context. Later calls do nothing. */
  firstToken(nowMs: number): void {
    if (this.#phase !== "waiting") return;
    this.#phase = "running";
    this.#firstTokenAtMs = nowMs;
    this.#account.removeWaiting(this);
    this.#account.prefillMoved(nowMs);
    this.#account.addRunning(this.cost.promptTokens);
    this.progress(1, nowMs);
  }

  /** `tokens` more were generated. Before the first token it does nothing: tell `firstToken` first. */
  progress(tokens: number, nowMs: number): void {
    if (this.#phase !== "running") return;
    const generated = this.#generatedTokens + whole(tokens);
    const remaining = whole(Math.round(this.#output.remainingAfter(generated)));
    this.#generatedTokens = generated;
    this.#lastProgressMs = nowMs;
    this.#account.contextTokens += tokens;
    this.#account.outputTokens += remaining - this.#remainingTokens;
    this.#remainingTokens = remaining;
  }

  /** Takes everything this lease holds off the account. False: it was closed already, and nothing changed. */
  close(nowMs: number): boolean {
    if (this.#phase === "closed") return false;
    if (this.#phase === "running") this.#account.removeRunning(this.cost.promptTokens + this.#generatedTokens);
    else if (this.#account.removeWaiting(this)) this.#account.prefillMoved(nowMs);
    this.#account.outputTokens -= this.#remainingTokens;
    this.#account.requests--;
    this.#phase = "closed";
    this.#closed();
    return true;
  }
}

/** Whole numbers add up exactly in any order, so that an idle account reads 0: anything else would leave dust behind. */
function whole(tokens: number): number {
  if (!Number.isSafeInteger(tokens) || tokens < 0) throw new RangeError(`not a number of tokens: ${tokens}`);
  return tokens;
}

/** The one place that knows the work in flight. */
export class Ledger {
  readonly #accounts = new Map<string, MutableAccount>();
  readonly #forgotten = new Set<string>();
  readonly #changed: Set<string>;
  /** Of the prefill that all of them were sent lately. */
  readonly #fading = new Fading(RECENT_PREFILL_MS);

  /** @param changed Takes the ids of endpoints where requests come, show their first token or end; left out: nobody asks. */
  constructor(changed: Set<string> = new Set()) {
    this.#changed = changed;
  }

  /**
   * The account of an endpoint, opened when first asked for. An endpoint that comes back while old
   * work still runs there gets its account back with that work in it.
   */
  account(endpointId: string): Account {
    this.#forgotten.delete(endpointId);
    return this.#mutable(endpointId);
  }

  /** Opens a lease for a request of `cost`, in whole tokens, that goes to `endpointId` now. */
  open(endpointId: string, cost: Cost, output: OutputExpectation, nowMs: number): Lease {
    // Pairs come in halves.
    const { prefillTokens, prefillPairs, promptTokens, decodeTokens } = cost;
    for (const tokens of [prefillTokens, 2 * prefillPairs, promptTokens, decodeTokens]) whole(tokens);
    return new Lease(endpointId, this.#mutable(endpointId), cost, output, nowMs, () =>
      this.#dropIfForgotten(endpointId),
    );
  }

  /** See `MutableAccount.adopt`. */
  adopt(endpointId: string, from: string, share: AccountShare | undefined, isPrompt: boolean, nowMs: number): void {
    this.#mutable(endpointId).adopt(from, share, isPrompt, nowMs);
  }

  /** This balancer's own part of the account. */
  own(endpointId: string, nowMs: number): AccountShare {
    return this.#mutable(endpointId).own(nowMs);
  }

  /** The endpoint left its pool: its account goes as soon as nothing runs there any more. */
  forget(endpointId: string): void {
    this.#forgotten.add(endpointId);
    this.#accounts.get(endpointId)?.forgetOthers();
    this.#dropIfForgotten(endpointId);
  }

  #mutable(endpointId: string): MutableAccount {
    let account = this.#accounts.get(endpointId);
    if (account === undefined) {
      account = new MutableAccount(endpointId, this.#changed, this.#fading);
      this.#accounts.set(endpointId, account);
    }
    return account;
  }

  #dropIfForgotten(endpointId: string): void {
    if (!this.#forgotten.has(endpointId) || this.#accounts.get(endpointId)?.requests) return;
    this.#accounts.delete(endpointId);
    this.#forgotten.delete(endpointId);
    this.#changed.delete(endpointId);
  }
}
