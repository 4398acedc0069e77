import type { Account, AccountShare, Lease, RequestProfile } from "../../src/core/index.ts";

/** The sums of an account, over open leases and what other balancers told. */
export type Sums = Pick<
  Account,
  | "requests"
  | "waitingRequests"
  | "waitingPrefillTokens"
  | "waitingPrefillPairs"
  | "waitingPromptTokens"
  | "runningRequests"
  | "contextTokens"
  | "outputTokens"
>;

const SUMS = [
  "requests",
  "waitingRequests",
  "waitingPrefillTokens",
  "waitingPrefillPairs",
  "waitingPromptTokens",
  "runningRequests",
  "contextTokens",
  "outputTokens",
] as const satisfies readonly (keyof Sums)[];

/** A request that was sent, as whoever sent it keeps books of it: nothing here is read back from the ledger. */
export class OpenRequest {
  readonly request: RequestProfile;
  readonly lease: Lease;
  readonly endpointId: string;
  /** Its place in a `Bag`. */
  slot = -1;
  isRunning = false;
  generatedTokens = 0;

  constructor(request: RequestProfile, lease: Lease, endpointId: string) {
    this.request = request;
    this.lease = lease;
    this.endpointId = endpointId;
  }

  /** Its tokens are not seen: the balancer moves it on by itself. */
  get isUnseen(): boolean {
    return !this.request.isStreaming && this.request.output.meanTokens > 0;
  }
}

/** What every account must hold, kept by adding and subtracting what is done to the balancer. */
export class AccountOracle {
  readonly #sums = new Map<string, Record<keyof Sums, number>>();
  /** What other balancers told, by endpoint and by their name. */
  readonly #others = new Map<string, Map<string, AccountShare>>();

  opened(open: OpenRequest): void {
    const { promptTokens, prefillTokens, prefillPairs } = open.lease.cost;
    const cachedTokens = promptTokens - prefillTokens;
    const pairs = prefillTokens * cachedTokens + (prefillTokens * prefillTokens) / 2;
    if (promptTokens !== Math.ceil(open.request.promptTokens) || cachedTokens < 0 || prefillPairs !== pairs) {
      throw new Error(`a lease of ${promptTokens} prompt tokens costs ${prefillTokens} tokens, ${prefillPairs} pairs`);
    }
    this.#add(open, 1);
  }

  /** The first token, or `tokens` more, were told of. */
  moved(open: OpenRequest, tokens: number): void {
    this.#add(open, -1);
    open.isRunning = true;
    open.generatedTokens += tokens;
    this.#add(open, 1);
  }

  ended(open: OpenRequest): void {
    this.#add(open, -1);
  }

  /** What the balancer `from` said; undefined: it is gone. */
  told(endpointId: string, from: string, share: AccountShare | undefined): void {
    const others = this.#othersOf(endpointId);
    const before = others.get(from);
    if (before !== undefined) this.#addShare(endpointId, before, -1);
    if (share === undefined) others.delete(from);
    else {
      others.set(from, share);
      this.#addShare(endpointId, share, 1);
    }
  }

  /** The endpoint left its pool: what others have there is no longer counted, open leases are. */
  left(endpointId: string): void {
    for (const from of [...this.#othersOf(endpointId).keys()]) this.told(endpointId, from, undefined);
  }

  /** @throws when the account of an endpoint is not the sum of what was done. */
  check(endpointId: string, account: Account): void {
    const sums = this.#sumsOf(endpointId);
    for (const name of SUMS) {
      const value = account[name];
      if (value !== sums[name]) throw new Error(`${name} of ${endpointId} is ${value}, its leases make ${sums[name]}`);
      if (!(value >= 0)) throw new Error(`${name} of ${endpointId} is ${value}`);
    }
  }

  #add({ endpointId, lease, request, isRunning, generatedTokens }: OpenRequest, sign: 1 | -1): void {
    const sums = this.#sumsOf(endpointId);
    const { promptTokens, prefillTokens, prefillPairs } = lease.cost;
    sums.requests += sign;
    sums.outputTokens += sign * Math.round(request.output.remainingAfter(generatedTokens));
    if (isRunning) {
      sums.runningRequests += sign;
      sums.contextTokens += sign * (promptTokens + generatedTokens);
    } else {
      sums.waitingRequests += sign;
      sums.waitingPrefillTokens += sign * prefillTokens;
      sums.waitingPrefillPairs += sign * prefillPairs;
      sums.waitingPromptTokens += sign * promptTokens;
    }
  }

  #addShare(endpointId: string, share: AccountShare, sign: 1 | -1): void {
    const sums = this.#sumsOf(endpointId);
    for (const name of SUMS) sums[name] += sign * share[name];
  }

  #sumsOf(endpointId: string): Record<keyof Sums, number> {
    let sums = this.#sums.get(endpointId);
    if (sums === undefined) {
      sums = Object.fromEntries(SUMS.map((name) => [name, 0])) as Record<keyof Sums, number>;
      this.#sums.set(endpointId, sums);
    }
    return sums;
  }

  #othersOf(endpointId: string): Map<string, AccountShare> {
    let others = this.#others.get(endpointId);
    if (others === undefined) {
      others = new Map();
      this.#others.set(endpointId, others);
    }
    return others;
  }
}
