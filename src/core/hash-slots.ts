/**
 * Gives each of a set of hashes a slot, a small number of its own, so that what is known of it can lie in typed arrays.
 * An open-addressed table: a `Map` would box every hash, since hashes are doubles, and leave work to the collector.
 */
export class HashSlots {
  /** By slot; not a number: nobody has it. */
  #hashes = new Float64Array(START_CAPACITY).fill(Number.NaN);
  /** Slot + 1 of the hash that lies here; 0: none. Twice as many as slots, so that runs stay short. */
  #buckets = new Int32Array(2 * START_CAPACITY);
  /** Leaves as many bits of 32 as number the buckets. */
  #shift = Math.clz32(2 * START_CAPACITY) + 1;
  /** Slots given back, for use before new ones. */
  readonly #free: number[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Slots are below this; grows when it must. */
  get capacity(): number {
    return this.#hashes.length;
  }

  /** -1: the hash has no slot. */
  slotOf(hash: number): number {
    const buckets = this.#buckets;
    const mask = buckets.length - 1;
    for (let bucket = this.#homeOf(hash); ; bucket = (bucket + 1) & mask) {
      const slot = (buckets[bucket] as number) - 1;
      if (slot < 0 || this.#hashes[slot] === hash) return slot;
    }
  }

  /**
   * The same, where a guess is at hand: hashes that were added one after the other mostly have slots side by side, and
   * to look there costs a quarter of a search.
   */
  slotNear(hash: number, guess: number): number {
    const isRight = guess >= 0 && guess < this.capacity && this.#hashes[guess] === hash;
    return isRight ? guess : this.slotOf(hash);
  }

  /**
   * How many of the first `count` hashes of a chain have slots. Logarithmic in that number, where whoever holds a link
   * holds all before it: of most chains, most tables hold little or nothing.
   */
  leadOf(chain: readonly number[], count: number): number {
    let held = 0;
    let missing = count;
    for (let stride = 1; held + stride <= count; stride *= 2) {
      if (this.slotOf(chain[held + stride - 1] as number) < 0) {
        missing = held + stride - 1;
        break;
      }
      held += stride;
    }
    while (held < missing) {
      const middle = (held + missing) >>> 1;
      if (this.slotOf(chain[middle] as number) < 0) missing = middle;
      else held = middle + 1;
    }
    return held;
  }

  hashAt(slot: number): number {
    return this.#hashes[slot] as number;
  }

  /** A slot for a hash that has none. */
  add(hash: number): number {
    if (this.#size === this.capacity) this.#grow();
    const slot = this.#free.pop() ?? this.#size;
    this.#size++;
    this.#hashes[slot] = hash;
    this.#place(slot);
    return slot;
  }

  /** Takes the slot back. */
  remove(slot: number): void {
    const buckets = this.#buckets;
    const mask = buckets.length - 1;
    let hole = this.#homeOf(this.hashAt(slot));
    while (buckets[hole] !== slot + 1) hole = (hole + 1) & mask;
    // Whoever lies behind the hole and was pushed past it moves up, so that no search ends too early.
    for (let bucket = (hole + 1) & mask; buckets[bucket] !== 0; bucket = (bucket + 1) & mask) {
      const home = this.#homeOf(this.hashAt((buckets[bucket] as number) - 1));
      if (((bucket - home) & mask) < ((bucket - hole) & mask)) continue;
      buckets[hole] = buckets[bucket] as number;
      hole = bucket;
    }
    buckets[hole] = 0;
    this.#hashes[slot] = Number.NaN;
    this.#free.push(slot);
    this.#size--;
  }

  clear(): void {
    this.#buckets.fill(0);
    this.#hashes.fill(Number.NaN);
    this.#free.length = 0;
    this.#size = 0;
  }

  /** Fibonacci hashing: neighbours, which would make one long run, are spread over the table. */
  #homeOf(hash: number): number {
    return Math.imul(hash, 0x9e3779b1) >>> this.#shift;
  }

  #place(slot: number): void {
    const mask = this.#buckets.length - 1;
    let bucket = this.#homeOf(this.hashAt(slot));
    while (this.#buckets[bucket] !== 0) bucket = (bucket + 1) & mask;
    this.#buckets[bucket] = slot + 1;
  }

  #grow(): void {
    const hashes = new Float64Array(2 * this.capacity).fill(Number.NaN);
    hashes.set(this.#hashes);
    this.#hashes = hashes;
    this.#buckets = new Int32Array(2 * hashes.length);
    this.#shift--;
    for (let slot = 0; slot < this.#size; slot++) this.#place(slot);
  }
}

/** A power of two; some dozen ordinary prompts. */
const START_CAPACITY = 256;
