import type { Candidate, Candidates } from "../../core/index.ts";

/**
 * Consistent hashing: every endpoint has `virtualNodes` points on a ring of 32 bits, and a key belongs to the endpoint
 * of the next point. Points of endpoints that are no candidates are passed over, which is the same as if they had none.
 */
export class HashRing {
  readonly #virtualNodes: number;
  readonly #known = new Set<string>();
  /** In ascending order of place. */
  #points: { readonly place: number; readonly id: string }[] = [];

  constructor(virtualNodes: number) {
    this.#virtualNodes = virtualNodes;
  }

  /** The first candidate from the key's place on that `accepts`; undefined: none does. */
  find(key: number, candidates: Candidates, accepts: (candidate: Candidate) => boolean): Candidate | undefined {
    this.#learn(candidates);
    const left = new Map(candidates.map((candidate) => [candidate.endpoint.id, candidate]));
    const points = this.#points;
    const start = this.#firstFrom(placeOfKey(key));
    for (let step = 0; step < points.length && left.size > 0; step++) {
      const { id } = points[(start + step) % points.length] as { id: string };
      const candidate = left.get(id);
      if (candidate === undefined) continue;
      if (accepts(candidate)) return candidate;
      left.delete(id);
    }
    return undefined;
  }

  #learn(candidates: Candidates): void {
    const before = this.#points.length;
    for (const { endpoint } of candidates) {
      if (this.#known.has(endpoint.id)) continue;
      this.#known.add(endpoint.id);
      for (let node = 0; node < this.#virtualNodes; node++) {
        this.#points.push({ place: placeOfName(`${endpoint.id}/${node}`), id: endpoint.id });
      }
    }
    // Equal places in the order of their ids, so that the ring does not depend on who was met first.
    if (this.#points.length > before) this.#points.sort((a, b) => a.place - b.place || (a.id < b.id ? -1 : 1));
  }

  #firstFrom(place: number): number {
    let low = 0;
    let high = this.#points.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#points[middle] as { place: number }).place < place) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** FNV-1a, then mixed: names that differ in their last digit alone must not lie side by side. */
function placeOfName(name: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193);
  return mixed(hash);
}

/** Keys are block hashes of up to 53 bits. */
function placeOfKey(key: number): number {
  return mixed(mixed(key | 0) ^ Math.floor(key / 2 ** 32));
}

/** The finaliser of MurmurHash3. */
function mixed(hash: number): number {
  let state = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
  return (state ^ (state >>> 16)) >>> 0;
}
