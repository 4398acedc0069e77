/** Things to do at times to come, in order of time and then of asking. */
export class Deliveries {
  readonly #queue: { readonly atMs: number; readonly act: () => void }[] = [];

  /** Infinity: nothing is left to do. */
  get nextMs(): number {
    return this.#queue[0]?.atMs ?? Number.POSITIVE_INFINITY;
  }

  at(atMs: number, act: () => void): void {
    let place = this.#queue.length;
    while (place > 0 && (this.#queue[place - 1]?.atMs ?? 0) > atMs) place--;
    this.#queue.splice(place, 0, { atMs, act });
  }

  run(): void {
    this.#queue.shift()?.act();
  }
}
