/**
 * Which mirrors of a pool may hold the first block of a prompt, and with it anything of that prompt. Most endpoints hold
 * nothing of most prompts: that is told here from counts that lie side by side, where a look into the mirror of each
 * would be a walk through the memory of all of them.
 */
export class FirstBlocks {
  /** How many first blocks a mirror holds, by what their hashes have in common and by mirror. */
  #counts = new Uint32Array(ROWS);
  /** Mirrors that there is room for. */
  #columns = 1;
  readonly #free: number[] = [0];

  /** A column for one mirror more. */
  take(): number {
    if (this.#free.length === 0) this.#grow();
    return this.#free.pop() as number;
  }

  /** The mirror is used no more. */
  giveBack(column: number): void {
    this.clear(column);
    this.#free.push(column);
  }

  /** False: for sure it does not. */
  mayHold(hash: number, column: number): boolean {
    return (this.#counts[this.#placeOf(hash, column)] as number) > 0;
  }

  add(hash: number, column: number): void {
    const place = this.#placeOf(hash, column);
    this.#counts[place] = (this.#counts[place] as number) + 1;
  }

  remove(hash: number, column: number): void {
    const place = this.#placeOf(hash, column);
    this.#counts[place] = (this.#counts[place] as number) - 1;
  }

  /** The mirror holds nothing any more. */
  clear(column: number): void {
    for (let place = column; place < this.#counts.length; place += this.#columns) this.#counts[place] = 0;
  }

  #placeOf(hash: number, column: number): number {
    return (hash & (ROWS - 1)) * this.#columns + column;
  }

  #grow(): void {
    const before = this.#columns;
    const counts = new Uint32Array(2 * this.#counts.length);
    for (let row = 0; row < ROWS; row++) {
      counts.set(this.#counts.subarray(row * before, (row + 1) * before), row * 2 * before);
    }
    this.#counts = counts;
    this.#columns = 2 * before;
    for (let column = before; column < this.#columns; column++) this.#free.push(column);
  }
}

/** Many times the conversations that one cache holds; a power of two. */
const ROWS = 2048;
