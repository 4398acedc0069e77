/**
 * When each of a fixed number of sources has its next event, and which comes first: a tournament, so that one change
 * costs the logarithm of their number. Of events at the same moment the source with the lowest number comes first.
 */
export class Agenda {
  readonly #times: Float64Array;
  /** A binary tree in an array, root at 1, leaves in the second half: each node has the winner of its two children. */
  readonly #winners: Int32Array;
  readonly #leaves: number;

  constructor(sources: number) {
    this.#leaves = 2 ** Math.ceil(Math.log2(Math.max(2, sources)));
    this.#times = new Float64Array(this.#leaves).fill(Number.POSITIVE_INFINITY);
    this.#winners = new Int32Array(2 * this.#leaves);
    for (let source = 0; source < this.#leaves; source++) this.#winners[this.#leaves + source] = source;
    for (let node = this.#leaves - 1; node >= 1; node--) this.#winners[node] = this.#winners[2 * node] as number;
  }

  /** The source whose event comes first. */
  get first(): number {
    return this.#winners[1] as number;
  }

  /** When it comes; infinite: never, nothing is to come. */
  get firstAtMs(): number {
    return this.#times[this.first] as number;
  }

  /** The next event of `source` is at `atMs`; infinite: it has none. */
  set(source: number, atMs: number): void {
    const times = this.#times;
    if (times[source] === atMs) return;
    times[source] = atMs;
    const winners = this.#winners;
    for (let node = (this.#leaves + source) >> 1; node >= 1; node >>= 1) {
      const left = winners[2 * node] as number;
      const right = winners[2 * node + 1] as number;
      winners[node] = (times[right] as number) < (times[left] as number) ? right : left;
    }
  }
}
