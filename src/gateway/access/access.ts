import type { IncomingHttpHeaders } from "node:http";
import type { Priority } from "../../core/index.ts";
import type { ClientKey, Clock, KeyUse, KeyUses } from "../../runtime/index.ts";
import { createKeyCheck, type KeyCheck } from "./key-check.ts";
import { KeyMeter } from "./key-meter.ts";
import { TAKEN, type Taking } from "./token-bucket.ts";

/** Who sent a request, and what they may do. */
export interface Caller {
  /** The configured name of the key; undefined: no keys are configured. */
  readonly keyId: string | undefined;
  /** Whose request it is; undefined: no key says so. */
  readonly tenant: string | undefined;
  /** The highest priority its requests may have. */
  readonly ceiling: Priority;
  /** By the name the client uses, alias or not. */
  mayUse(model: string | undefined): boolean;
  /** Counts one request. Call it once per request, when its head is there. */
  takeRequest(): Taking;
  /** Counts what a request is expected to use, prompt and output. */
  takeTokens(tokens: number): Taking;
  /** Replaces what was taken by what was used, once that is known; a request that was not served used 0. */
  settleTokens(taken: number, used: number): void;
  /** The headers that say how much of the limits is left, names and values in turn; empty: there are none. */
  limitHeaders(): string[];
}

/** Decides who may send requests. Keeps what each key has used, over changes of the configuration too. */
export class Access {
  readonly #clock: Clock;
  readonly #uses: KeyUses | undefined;
  #check: KeyCheck<ClientKey> = createKeyCheck([]);
  /** False: there are no keys, so that everybody may. */
  #asksForKeys = false;
  #callers: ReadonlyMap<string, KeyCaller> = new Map();

  /** @param uses What keys use over all processes that serve them; undefined: there is this one. */
  constructor(keys: readonly ClientKey[], clock: Clock, uses?: KeyUses) {
    this.#clock = clock;
    this.#uses = uses;
    uses?.onUsedElsewhere((keyId, use) => this.usedElsewhere(keyId, use));
    this.configure(keys);
  }

  /** What each key has used and not got back by now. */
  get outstanding(): ReadonlyMap<string, KeyUse> {
    const nowMs = this.#clock.nowMs();
    return new Map([...this.#callers].map(([keyId, { meter }]) => [keyId, meter.outstanding(nowMs)]));
  }

  /** Other processes let the key use that much more; an unknown one is nobody's. */
  usedElsewhere(keyId: string, use: KeyUse): void {
    this.#callers.get(keyId)?.meter.usedElsewhere(use, this.#clock.nowMs());
  }

  /**
   * Who sent a request with these headers; undefined: nobody who may. Where keys are asked for, the credentials are
   * taken out of the headers: they were meant for this balancer, and nothing behind this line gets to see them.
   */
  admit(headers: IncomingHttpHeaders): Caller | undefined {
    if (!this.#asksForKeys) return ANYBODY;
    const key = this.#check(headers);
    delete headers.authorization;
    delete headers["x-api-key"];
    return key && this.#callers.get(key.id);
  }

  /** From now on these keys are known. A key that keeps its id keeps what it has used. */
  configure(keys: readonly ClientKey[]): void {
    this.#check = createKeyCheck(keys);
    this.#asksForKeys = keys.length > 0;
    this.#callers = new Map(keys.map((key) => [key.id, this.#callerOf(key)]));
  }

  #callerOf(key: ClientKey): KeyCaller {
    const meter = this.#callers.get(key.id)?.meter;
    meter?.configure(key, this.#clock.nowMs());
    return new KeyCaller(key, meter ?? new KeyMeter(key, this.#clock.nowMs()), this.#clock, this.#uses);
  }
}

class KeyCaller implements Caller {
  readonly meter: KeyMeter;
  readonly keyId: string;
  readonly tenant: string;
  readonly ceiling: Priority;
  readonly #models: ReadonlySet<string> | undefined;
  readonly #clock: Clock;
  readonly #uses: KeyUses | undefined;

  constructor(key: ClientKey, meter: KeyMeter, clock: Clock, uses: KeyUses | undefined) {
    this.#uses = uses;
    this.meter = meter;
    this.keyId = key.id;
    this.tenant = key.tenant;
    this.ceiling = key.priority;
    this.#models = key.models && new Set(key.models);
    this.#clock = clock;
  }

  mayUse(model: string | undefined): boolean {
    return this.#models === undefined || (model !== undefined && this.#models.has(model));
  }

  takeRequest(): Taking {
    const taking = this.meter.takeRequest(this.#clock.nowMs());
    if (taking.isTaken) this.#uses?.used(this.keyId, 1, 0);
    return taking;
  }

  takeTokens(tokens: number): Taking {
    const taking = this.meter.takeTokens(tokens, this.#clock.nowMs());
    if (taking.isTaken) this.#uses?.used(this.keyId, 0, tokens);
    return taking;
  }

  settleTokens(taken: number, used: number): void {
    this.meter.settleTokens(taken, used, this.#clock.nowMs());
    this.#uses?.used(this.keyId, 0, used - taken);
  }

  limitHeaders(): string[] {
    return this.meter.headers(this.#clock.nowMs());
  }
}

/** Whoever sends when no keys are configured. */
export const ANYBODY: Caller = {
  keyId: undefined,
  tenant: undefined,
  ceiling: "normal",
  mayUse: () => true,
  takeRequest: () => TAKEN,
  takeTokens: () => TAKEN,
  settleTokens: () => {},
  limitHeaders: () => [],
};
