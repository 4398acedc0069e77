import { describe, expect, it } from "vitest";
import { seededRandom } from "../core/index.ts";
import type { Replica } from "./replica.ts";
import { ReplicaDealer } from "./replica-dealer.ts";

const replicas = [0, 1, 2].map((wakeSource) => ({ wakeSource }) as Replica);
const numbers = (dealer: ReplicaDealer, keys: readonly (string | undefined)[]) =>
  keys.map((key) => dealer.next(key).wakeSource);

describe("ReplicaDealer", () => {
  it("gives each its turn", () => {
    expect(numbers(new ReplicaDealer(replicas, "in_turn", seededRandom(1)), ["a", "a", "a", undefined])).toEqual([
      0, 1, 2, 0,
    ]);
  });

  it("keeps a session where it is, and spreads sessions", () => {
    const dealer = new ReplicaDealer(replicas, "by_session", seededRandom(1));
    const keys = Array.from({ length: 300 }, (_, i) => `session-${i}`);
    const places = numbers(dealer, keys);
    expect(numbers(dealer, keys)).toEqual(places);
    for (const replica of [0, 1, 2]) expect(places.filter((place) => place === replica).length).toBeGreaterThan(70);
    expect(new Set(numbers(dealer, [undefined, undefined, undefined])).size).toBe(3);
  });

  it("deals at random, whoever asks", () => {
    const places = numbers(
      new ReplicaDealer(replicas, "at_random", seededRandom(1)),
      Array.from({ length: 300 }, () => "a"),
    );
    for (const replica of [0, 1, 2]) expect(places.filter((place) => place === replica).length).toBeGreaterThan(70);
    expect(places.slice(0, 30)).not.toEqual(Array.from({ length: 30 }, (_, i) => i % 3));
  });

  it("needs one replica at least", () => {
    expect(() => new ReplicaDealer([], "in_turn", seededRandom(1))).toThrow(RangeError);
  });
});
