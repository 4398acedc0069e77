import type { LookupFunction } from "node:net";
import { setTimeout } from "node:timers/promises";
import type { Clock } from "./clock.ts";
import { lookupBy, type Resolver } from "./resolver.ts";
import { isSameValue } from "./same-value.ts";

/** How old the addresses of a name may get: what most balancers and clusters take for a moved address to be noticed. */
const TTL_MS = 5_000;

/** How long a connection waits for a look-up while older addresses are known: a resolver that hangs must not stop traffic. */
const PATIENCE_MS = 500;

/** The addresses that a name stands for, looked up again as they get old. What was found last is kept while no look-up succeeds. */
export class HostAddresses {
  /** For connections: looks up first what has got too old. */
  readonly lookup: LookupFunction;
  readonly #host: string;
  readonly #resolver: Resolver;
  readonly #clock: Clock;
  readonly #moved: () => void;
  /** Sorted; undefined: none were found yet. */
  #addresses: readonly string[] | undefined;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  /** Under way. */
  #asking: Promise<readonly string[]> | undefined;

  /** @param moved Is called when the name stands for other addresses than before. */
  constructor(host: string, resolver: Resolver, clock: Clock, moved: () => void) {
    this.#host = host;
    this.#resolver = resolver;
    this.#clock = clock;
    this.#moved = moved;
    this.lookup = lookupBy(() => this.#current());
  }

  /** Looks them up in passing if they are old: whoever asks does not wait. */
  keepFresh(): void {
    if (this.#addresses !== undefined && this.#isOld) this.#ask().catch(() => {});
  }

  /** Looks them up now. @returns whether they are others than before. */
  async renew(): Promise<boolean> {
    const before = this.#addresses;
    await this.#asked().catch(() => {});
    return this.#addresses !== before;
  }

  get #isOld(): boolean {
    return this.#clock.nowMs() - this.#askedAtMs >= TTL_MS;
  }

  async #current(): Promise<readonly string[]> {
    return this.#addresses !== undefined && !this.#isOld ? this.#addresses : await this.#asked();
  }

  /** The answer of a look-up, or what is known already if that takes long. */
  async #asked(): Promise<readonly string[]> {
    const known = this.#addresses;
    const asking = this.#ask();
    if (known === undefined) return await asking;
    const waiting = new AbortController();
    const patience = setTimeout(PATIENCE_MS, known, { signal: waiting.signal }).catch(() => known);
    try {
      return await Promise.race([asking, patience]);
    } finally {
      waiting.abort();
    }
  }

  #ask(): Promise<readonly string[]> {
    this.#asking ??= this.#resolve().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #resolve(): Promise<readonly string[]> {
    this.#askedAtMs = this.#clock.nowMs();
    const before = this.#addresses;
    try {
      const found = [...(await this.#resolver.resolve(this.#host))].sort();
      if (found.length > 0 && !isSameValue(found, before)) this.#addresses = found;
    } catch (error) {
      if (before === undefined) throw error;
    }
    if (before !== undefined && this.#addresses !== before) this.#moved();
    return this.#addresses ?? [];
  }
}
