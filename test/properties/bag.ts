/** Items in no order, of which any can be picked at random and taken out at once. */
export class Bag<Item extends { slot: number }> {
  readonly #items: Item[] = [];

  get size(): number {
    return this.#items.length;
  }

  /** Undefined: the bag holds fewer. */
  at(index: number): Item | undefined {
    return this.#items[index];
  }

  items(): readonly Item[] {
    return [...this.#items];
  }

  add(item: Item): void {
    item.slot = this.#items.push(item) - 1;
  }

  remove(item: Item): void {
    const last = this.#items.pop();
    if (last === undefined || last === item) return;
    this.#items[item.slot] = last;
    last.slot = item.slot;
  }
}
