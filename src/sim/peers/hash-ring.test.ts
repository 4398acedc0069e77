import { describe, expect, it } from "vitest";
import { candidatesOf } from "../../../test/support/candidate.ts";
import { tally, times } from "../../../test/support/fleet.ts";
import { type Candidates, seededRandom } from "../../core/index.ts";
import { HashRing } from "./hash-ring.ts";

const five = candidatesOf({ id: "e0" }, { id: "e1" }, { id: "e2" }, { id: "e3" }, { id: "e4" });
const random = seededRandom(3);
const keys = times(2000, () => Math.floor(random.next() * 2 ** 52));
const owners = (ring: HashRing, candidates: Candidates) =>
  keys.map((key) => ring.find(key, candidates, () => true)?.endpoint.id ?? "");

describe("HashRing", () => {
  it("gives each endpoint about the same share", () => {
    const counts = tally(owners(new HashRing(256), five));
    // The share of 256 random arcs varies by 1/16 of itself, that of 400 keys by 1/20: 8 % together; four of them.
    for (const count of Object.values(counts)) expect(Math.abs(count - 400)).toBeLessThan(128);
    expect(Object.keys(counts)).toHaveLength(5);
  });

  it("moves only what belonged to an endpoint that is no candidate", () => {
    const ring = new HashRing(256);
    const before = owners(ring, five);
    const [e0, e1, e2, , e4] = five;
    const after = owners(ring, [e0, e1, e2, e4] as unknown as Candidates);
    before.forEach((id, index) => {
      if (id === "e3") expect(after[index]).not.toBe("e3");
      else expect(after[index]).toBe(id);
    });
  });

  it("does not depend on who was met first", () => {
    const late = new HashRing(256);
    late.find(1, candidatesOf({ id: "e4" }, { id: "e2" }), () => true);
    expect(owners(late, five)).toEqual(owners(new HashRing(256), five));
  });

  it("goes on to the next that accepts, and finds none when none does", () => {
    const ring = new HashRing(256);
    const own = ring.find(7, five, () => true);
    const next = ring.find(7, five, (candidate) => candidate !== own);
    expect(next).not.toBe(own);
    expect(five).toContain(next);
    expect(ring.find(7, five, () => false)).toBeUndefined();
  });
});
