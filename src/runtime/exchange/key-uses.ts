import type { KeyUse } from "./work-exchange.ts";

/** What keys use over all nodes: counts what they use here, and tells what they use elsewhere. */
export class KeyUses {
  readonly #own = new Map<string, { requests: number; tokens: number }>();
  readonly #changed = new Set<string>();
  /** By node and key: what it said last. */
  readonly #others = new Map<string, Map<string, KeyUse>>();
  #listener: ((keyId: string, use: KeyUse) => void) | undefined;

  /** The key used so much more here. Negative: less than it was taken to have used. */
  used(keyId: string, requests: number, tokens: number): void {
    const use = this.#own.get(keyId) ?? { requests: 0, tokens: 0 };
    use.requests += requests;
    use.tokens += tokens;
    this.#own.set(keyId, use);
    this.#changed.add(keyId);
  }

  /** The one who is told how much more a key used elsewhere; a later one takes its place. */
  onUsedElsewhere(listener: (keyId: string, use: KeyUse) => void): void {
    this.#listener = listener;
  }

  /** What to tell the others: of all keys, or of those that used something since it was last asked. */
  take(extent: "whole" | "changes"): ReadonlyMap<string, KeyUse> {
    const ids = extent === "whole" ? [...this.#own.keys()] : [...this.#changed];
    this.#changed.clear();
    return new Map(ids.map((id) => [id, { ...(this.#own.get(id) as KeyUse) }]));
  }

  /** What the node `from` said. What it counted before it was met is not of now. */
  adopt(from: string, uses: ReadonlyMap<string, KeyUse>, isFirst: boolean): void {
    const known = this.#others.get(from) ?? new Map<string, KeyUse>();
    this.#others.set(from, known);
    for (const [keyId, use] of uses) {
      const before = known.get(keyId) ?? (isFirst ? use : NOTHING);
      known.set(keyId, use);
      const more = { requests: use.requests - before.requests, tokens: use.tokens - before.tokens };
      if (more.requests !== 0 || more.tokens !== 0) this.#listener?.(keyId, more);
    }
  }

  /** The node is gone. What keys used there stays used. */
  forget(from: string): void {
    this.#others.delete(from);
  }
}

const NOTHING: KeyUse = { requests: 0, tokens: 0 };
