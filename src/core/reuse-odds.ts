/**
 * How likely a cached prefix is used again, by how long it has been idle: learned from the gaps after which prefixes
 * were used again. Over all prefixes of the pool,
 *
 *     q(x) = #{used again after more than x} / (#{released} - #{used again within x})
 *
 * where a prefix that is not yet used again counts as released. Gaps are counted in half octaves.
 */
export class ReuseOdds {
  readonly #returns = new Float64Array(BUCKETS).fill((PRIOR_RELEASES * PRIOR_REUSE) / BUCKETS);
  readonly #odds = new Float64Array(BUCKETS);
  #released = PRIOR_RELEASES;
  #isStale = true;

  /** `weight` of a prefix is not used any more; over one request they add up to 1. */
  released(weight: number): void {
    this.#released += weight;
    this.#isStale = true;
    if (this.#released > MEMORY) this.#halve();
  }

  /** A prefix that had been idle for `idleMs` was used again. */
  returned(idleMs: number, weight: number): void {
    const bucket = bucketOf(idleMs);
    this.#returns[bucket] = (this.#returns[bucket] as number) + weight;
    this.#isStale = true;
  }

  /** q / max(1/8, 1 - q): uses still to come of a prefix idle for `idleMs`, bounded where it is used for ever. */
  usesToCome(idleMs: number): number {
    if (this.#isStale) this.#update();
    return this.#odds[bucketOf(idleMs)] as number;
  }

  #update(): void {
    let beyond = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) beyond += this.#returns[bucket] as number;
    const returns = beyond;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      beyond -= this.#returns[bucket] as number;
      const idle = this.#released - (returns - beyond);
      const chance = idle > 0 ? Math.min(1, Math.max(0, beyond) / idle) : 1;
      this.#odds[bucket] = chance / Math.max(MIN_LOSS, 1 - chance);
    }
    this.#isStale = false;
  }

  /** What is older than a few thousand requests counts half. */
  #halve(): void {
    this.#released /= 2;
    for (let bucket = 0; bucket < BUCKETS; bucket++) this.#returns[bucket] = (this.#returns[bucket] as number) / 2;
  }
}

/** Half octaves from one second to about an hour; shorter gaps are in the first, longer ones in the last. */
const BUCKETS = 24;

/** Before anything was seen: 40 requests, of which 0.4 came back, evenly over the buckets. */
const PRIOR_RELEASES = 40;
const PRIOR_REUSE = 0.4;

/** Requests after which the past counts half. */
const MEMORY = 4_000;

/** A prefix is not believed to come back more than eight times. */
const MIN_LOSS = 1 / 8;

function bucketOf(idleMs: number): number {
  if (!(idleMs > 1000)) return 0;
  return Math.min(BUCKETS - 1, 1 + Math.floor(2 * Math.log2(idleMs / 1000)));
}
