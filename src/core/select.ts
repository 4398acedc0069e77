import type { Random } from "./random.ts";

/**
 * The item with the smallest score, in one pass. Equal scores are drawn evenly, never settled by
 * list order: otherwise light traffic would all go to the first endpoint listed. A score that is not
 * a number loses to every other.
 */
export function leastBy<Item>(
  items: readonly [Item, ...Item[]],
  score: (item: Item, index: number) => number,
  random: Random,
): Item {
  let best: Item = items[0];
  let bestScore = Number.POSITIVE_INFINITY;
  let ties = 0;
  let index = 0;
  for (const item of items) {
    const itemScore = score(item, index++);
    if (!(itemScore <= bestScore)) continue;
    if (itemScore < bestScore) {
      best = item;
      bestScore = itemScore;
      ties = 1;
    } else if (random.next() * ++ties < 1) {
      best = item;
    }
  }
  return best;
}

/** An item drawn with probability proportional to its weight; evenly when no weight is above 0. */
export function sample<Item>(items: readonly [Item, ...Item[]], weight: (item: Item) => number, random: Random): Item {
  let total = 0;
  for (const item of items) total += Math.max(0, weight(item));
  if (total === 0) return items[Math.floor(random.next() * items.length)] ?? items[0];
  let left = random.next() * total;
  for (const item of items) {
    left -= Math.max(0, weight(item));
    if (left < 0) return item;
  }
  // Rounding can leave a sliver after the last positive weight: it belongs to the last item that has one.
  return items.findLast((item) => weight(item) > 0) ?? items[0];
}
