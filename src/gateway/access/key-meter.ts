import type { ClientKey, KeyUse } from "../../runtime/index.ts";
import { TAKEN, type Taking, TokenBucket } from "./token-bucket.ts";

/** What a key may use of a thing in a minute; undefined: as much as it likes. */
type Allowance = TokenBucket | undefined;

/** Counts what one key uses, in requests and in tokens, against what it may. */
export class KeyMeter {
  #requests: Allowance;
  #tokens: Allowance;

  constructor(key: ClientKey, nowMs: number) {
    this.#requests = allowance(undefined, key.requestsPerMinute, nowMs);
    this.#tokens = allowance(undefined, key.tokensPerMinute, nowMs);
  }

  /** Takes the limits of a key that was configured anew; what was used stays used. */
  configure(key: ClientKey, nowMs: number): void {
    this.#requests = allowance(this.#requests, key.requestsPerMinute, nowMs);
    this.#tokens = allowance(this.#tokens, key.tokensPerMinute, nowMs);
  }

  takeRequest(nowMs: number): Taking {
    return this.#requests?.take(1, nowMs) ?? TAKEN;
  }

  /** @param tokens What a request is expected to use, prompt and output. */
  takeTokens(tokens: number, nowMs: number): Taking {
    return this.#tokens?.take(tokens, nowMs) ?? TAKEN;
  }

  /** Corrects what `takeTokens` took, now that it is known. */
  settleTokens(taken: number, used: number, nowMs: number): void {
    this.#tokens?.putBack(taken - used, nowMs);
  }

  /** Other processes let the key use that much more. */
  usedElsewhere({ requests, tokens }: KeyUse, nowMs: number): void {
    this.#requests?.putBack(-requests, nowMs);
    this.#tokens?.putBack(-tokens, nowMs);
  }

  /** What was used and has not come back by now. */
  outstanding(nowMs: number): KeyUse {
    return { requests: this.#requests?.missing(nowMs) ?? 0, tokens: this.#tokens?.missing(nowMs) ?? 0 };
  }

  /** What is left, in OpenAI's headers; none for what is not limited. */
  headers(nowMs: number): string[] {
    return [...headersOf("requests", this.#requests, nowMs), ...headersOf("tokens", this.#tokens, nowMs)];
  }
}

function allowance(before: Allowance, perMinute: number | undefined, nowMs: number): Allowance {
  if (perMinute === undefined) return undefined;
  if (before === undefined) return new TokenBucket(perMinute, nowMs);
  return before.perMinute === perMinute ? before : before.resized(perMinute, nowMs);
}

function headersOf(what: "requests" | "tokens", bucket: Allowance, nowMs: number): string[] {
  if (bucket === undefined) return [];
  return [
    `x-ratelimit-limit-${what}`,
    String(Math.floor(bucket.perMinute)),
    `x-ratelimit-remaining-${what}`,
    String(Math.floor(bucket.remaining(nowMs))),
    `x-ratelimit-reset-${what}`,
    resetText(bucket.resetMs(nowMs)),
  ];
}

/** As OpenAI writes it: `6m0s`, `17s`. Rounded up, for who comes earlier is refused. */
function resetText(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}
