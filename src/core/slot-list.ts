/** Something that a `SlotList` can hold; in one list at a time. */
export interface Slotted {
  /** The list's own: where it keeps this item; -1: nowhere. */
  slot: number;
}

/**
 * Items that come and go quickly, in no order and without gaps. Not a Set: one that items pass through is
 * copied again and again, and each dead copy keeps its items from the young collection. With request bodies
 * behind them, that doubles the cost of a request.
 */
export class SlotList<Item extends Slotted> {
  readonly #items: Item[] = [];

  get size(): number {
    return this.#items.length;
  }

  add(item: Item): void {
    item.slot = this.#items.push(item) - 1;
  }

  /** Does nothing when the item is not in a list. */
  remove(item: Item): void {
    const { slot } = item;
    if (slot === -1) return;
    item.slot = -1;
    const last = this.#items.pop() as Item;
    if (last === item) return;
    this.#items[slot] = last;
    last.slot = slot;
  }

  /** The items at this moment; the list may change while they are gone through. */
  items(): readonly Item[] {
    return [...this.#items];
  }
}
