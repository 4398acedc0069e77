/**
 * Turns of the event loop for pieces of work that hold it up, one piece a turn. Long prompts that are whole at the same
 * moment would be read right after each other, and every stream would wait for all of them.
 */
export class LoopTurns {
  readonly #waiting: (() => void)[] = [];
  readonly #call = (): void => {
    this.#waiting.shift()?.();
    if (this.#waiting.length > 0) setImmediate(this.#call);
  };

  /** Resolves in a turn that nobody else gets. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#waiting.length === 1) setImmediate(this.#call);
    });
  }
}
