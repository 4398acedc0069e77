import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Agenda } from "./agenda.ts";

describe("Agenda", () => {
  it("has nothing to come at first", () => {
    expect(new Agenda(5).firstAtMs).toBe(Number.POSITIVE_INFINITY);
  });

  it("lets the lowest number go first at one and the same moment", () => {
    const agenda = new Agenda(6);
    for (const source of [4, 2, 5]) agenda.set(source, 10);
    expect([agenda.first, agenda.firstAtMs]).toEqual([2, 10]);
  });

  it("always knows the earliest, however times change", () => {
    const change = fc.tuple(fc.nat(12), fc.oneof(fc.nat(20), fc.constant(Number.POSITIVE_INFINITY)));
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 60 }), (changes) => {
        const agenda = new Agenda(13);
        const times = new Array<number>(13).fill(Number.POSITIVE_INFINITY);
        for (const [source, atMs] of changes) {
          agenda.set(source, atMs);
          times[source] = atMs;
          expect(agenda.firstAtMs).toBe(Math.min(...times));
          expect(agenda.first).toBe(times.indexOf(Math.min(...times)));
        }
      }),
    );
  });
});
