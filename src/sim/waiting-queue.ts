/**
 * First come, first served, with two exceptions an engine needs: a preempted item goes back to the front,
 * and an item that was given up is dropped in constant time (it is marked by its owner and skipped here).
 */
export class WaitingQueue<Item extends { readonly isAborted: boolean }> {
  /** Items that were put back, the first in line last. */
  readonly #front: Item[] = [];
  #items: Item[] = [];
  #head = 0;

  push(item: Item): void {
    this.#items.push(item);
  }

  putBack(item: Item): void {
    this.#front.push(item);
  }

  /** The first in line, left where it is; undefined: nobody waits. */
  peek(): Item | undefined {
    for (let item = this.#front.at(-1); item !== undefined; item = this.#front.at(-1)) {
      if (!item.isAborted) return item;
      this.#front.pop();
    }
    while (this.#head < this.#items.length) {
      const item = this.#items[this.#head];
      if (item !== undefined && !item.isAborted) return item;
      this.#dropHead();
    }
    return undefined;
  }

  /** Takes away what `peek` returned. */
  shift(): void {
    if (this.#front.length > 0) this.#front.pop();
    else this.#dropHead();
  }

  /** Moves the array down once most of it is consumed: constant time per item, and memory follows the queue. */
  #dropHead(): void {
    this.#head++;
    if (this.#head >= 64 && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
  }
}
