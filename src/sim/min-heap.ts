/** A binary heap: the first by `isBefore` is at hand, adding and taking it costs the logarithm of the size. */
export class MinHeap<Item> {
  readonly #isBefore: (a: Item, b: Item) => boolean;
  readonly #items: Item[] = [];

  constructor(isBefore: (a: Item, b: Item) => boolean) {
    this.#isBefore = isBefore;
  }

  get size(): number {
    return this.#items.length;
  }

  /** Undefined: it is empty. */
  peek(): Item | undefined {
    return this.#items[0];
  }

  push(item: Item): void {
    this.#rise(this.#items.length, item);
  }

  /** Takes the first out; undefined: it is empty. */
  pop(): Item | undefined {
    const first = this.#items[0];
    if (first !== undefined) this.#removeAt(0);
    return first;
  }

  /** Takes one out that need not be the first, in time proportional to the size. */
  remove(item: Item): void {
    const place = this.#items.indexOf(item);
    if (place >= 0) this.#removeAt(place);
  }

  #removeAt(place: number): void {
    const last = this.#items.pop() as Item;
    if (place < this.#items.length) this.#rise(this.#sink(place, last), last);
  }

  /** Moves the hole at `place` towards the root until `item` fits, and puts it there. */
  #rise(place: number, item: Item): void {
    const items = this.#items;
    let hole = place;
    while (hole > 0) {
      const parent = (hole - 1) >> 1;
      if (!this.#isBefore(item, items[parent] as Item)) break;
      items[hole] = items[parent] as Item;
      hole = parent;
    }
    items[hole] = item;
  }

  /** Moves the hole at `place` towards the leaves until `item` fits; returns where that is. */
  #sink(place: number, item: Item): number {
    const items = this.#items;
    let hole = place;
    for (let child = 2 * hole + 1; child < items.length; child = 2 * hole + 1) {
      if (child + 1 < items.length && this.#isBefore(items[child + 1] as Item, items[child] as Item)) child++;
      if (!this.#isBefore(items[child] as Item, item)) break;
      items[hole] = items[child] as Item;
      hole = child;
    }
    return hole;
  }
}
