import { describe, expect, it } from "vitest";
import type { Replica } from "./replica.ts";
import { ReplicaDealer } from "./replica-dealer.ts";

const replicas = [0, 1, 2].map((wakeSource) => ({ wakeSource }) as Replica);
const numbers = (dealer: ReplicaDealer, keys: readonly (string | undefined)[]) =>
  keys.map((key) => dealer.next(key).wakeSource);

describe("ReplicaDealer", () => {
  it("gives each its turn", () => {
    expect(numbers(new ReplicaDealer(replicas, "in_turn"), ["a", "a", "a", undefined])).toEqual([0, 1, 2, 0]);
  });

  it("keeps a session where it is, and spreads sessions", () => {
    const dealer = new ReplicaDealer(replicas, "by_session");
    const keys = Array.from({ length: 300 }, (_, i) => `session-${i}`);
    const places = numbers(dealer, keys);
    expect(numbers(dealer, keys)).toEqual(places);
    for (const replica of [0, 1, 2]) expect(places.filter((place) => place === replica).length).toBeGreaterThan(70);
    expect(new Set(numbers(dealer, [undefined, undefined, undefined])).size).toBe(3);
  });

  it("needs one replica at least", () => {
    expect(() => new ReplicaDealer([], "in_turn")).toThrow(RangeError);
  });
});
