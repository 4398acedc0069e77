/** Who is told of a change. What is told is that there was one; whoever is told looks for himself. */
export class Listeners {
  readonly #listeners = new Set<() => void>();

  /** `listener` is told from now on, as long as there is something to tell. */
  add(listener: () => void): void {
    this.#listeners.add(listener);
  }

  tell(): void {
    for (const listener of this.#listeners) listener();
  }
}
