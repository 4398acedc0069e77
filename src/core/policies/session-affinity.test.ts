import { describe, expect, it } from "vitest";
import { Fleet, nonEmpty, tally, times } from "../../../test/support/fleet.ts";
import { policyContext } from "../../../test/support/policy-context.ts";
import type { Candidates } from "../policy.ts";
import { seededRandom } from "../random.ts";
import { requestProfile } from "../request.ts";
import { sessionAffinity } from "./session-affinity.ts";

const KEYS = times(1000, (index) => `session-${index}`);
const work = requestProfile({ promptTokens: 0, expectedOutputTokens: 1000 });

describe("session_affinity", () => {
  it("keeps every session where it is, and spreads sessions evenly", () => {
    const fleet = fleetOf(5);
    const placed = KEYS.map((key) => place(fleet.candidates, key));
    expect(KEYS.map((key) => place(fleet.candidates, key, { seed: 2 }))).toEqual(placed);
    // Binomial, n = 1000, p = 1/5: standard deviation 12.6; four of them.
    for (const count of Object.values(tally(placed))) expect(Math.abs(count - 200)).toBeLessThan(51);
  });

  it("gives sessions in proportion to weight", () => {
    const fleet = new Fleet([{ id: "a" }, { id: "b", weight: 3 }]);
    const counts = tally(KEYS.map((key) => place(fleet.candidates, key)));
    // Binomial, n = 1000, p = 3/4: standard deviation 13.7; four of them.
    expect(Math.abs((counts.b ?? 0) - 750)).toBeLessThan(55);
  });

  it("moves only the sessions of an endpoint that goes, evenly over the others", () => {
    const fleet = fleetOf(5);
    const left = nonEmpty(fleet.candidates.filter(({ endpoint }) => endpoint.id !== "e3"));
    const moved = KEYS.filter((key) => {
      const before = place(fleet.candidates, key);
      if (before !== "e3") expect(place(left, key)).toBe(before);
      return before === "e3";
    });
    const counts = Object.values(tally(moved.map((key) => place(left, key))));
    expect(counts).toHaveLength(4);
    // Binomial, n about 200, p = 1/4: standard deviation 6.1; four of them.
    for (const count of counts) expect(Math.abs(count - moved.length / 4)).toBeLessThan(25);
  });

  it("moves sessions to an endpoint that comes and nowhere else", () => {
    const moved = KEYS.filter((key) => place(fleetOf(5).candidates, key) !== place(fleetOf(6).candidates, key));
    expect(new Set(moved.map((key) => place(fleetOf(6).candidates, key)))).toEqual(new Set(["e5"]));
    // Binomial, n = 1000, p = 1/6: standard deviation 11.8; four of them.
    expect(Math.abs(moved.length - 1000 / 6)).toBeLessThan(48);
  });

  it("does not depend on the order of the endpoints", () => {
    const { candidates } = fleetOf(5);
    const reversed = nonEmpty(candidates.toReversed());
    for (const key of KEYS) expect(place(reversed, key)).toBe(place(candidates, key));
  });

  it("passes an endpoint over its bound over, to the session's next choice, and returns when it is within", () => {
    const fleet = fleetOf(4);
    const own = place(fleet.candidates, "s");
    const next = place(nonEmpty(fleet.candidates.filter(({ endpoint }) => endpoint.id !== own)), "s");
    const leases = times(10, () => fleet.run(own, work));
    const choice = choose(fleet.candidates, "s");
    expect(choice.chosen.endpoint.id).toBe(next);
    expect(choice.reason).toBe(`the session's next choice: ${own} is over its load bound`);
    for (const lease of leases) lease.close(0);
    expect(choose(fleet.candidates, "s")).toMatchObject({
      chosen: { endpoint: { id: own } },
      reason: "the session's own endpoint",
    });
  });

  it("leaves the sessions of endpoints within the bound alone while another is overloaded", () => {
    const fleet = fleetOf(4);
    const before = KEYS.map((key) => place(fleet.candidates, key));
    times(20, () => fleet.run("e0", work));
    KEYS.forEach((key, index) => {
      if (before[index] !== "e0") expect(place(fleet.candidates, key)).toBe(before[index]);
      else expect(place(fleet.candidates, key)).not.toBe("e0");
    });
  });

  it("lets light work stick, however uneven it is", () => {
    // 1000 work tokens at 1000 a second: one second against a fleet mean of a quarter, floor two seconds.
    const fleet = fleetOf(4);
    const own = place(fleet.candidates, "s");
    fleet.run(own, work);
    expect(place(fleet.candidates, "s")).toBe(own);
    expect(place(fleet.candidates, "s", { floorSeconds: 0 })).not.toBe(own);
  });

  it("spreads one hot session over as many endpoints as its load needs, none far above the mean", () => {
    const fleet = fleetOf(8);
    times(80, () => fleet.run(place(fleet.candidates, "hot"), work));
    const loads = fleet.candidates.map(({ account }) => account.outputTokens / 1000);
    // The bound is tested before a request is added: one more second of work on top of it.
    for (const seconds of loads) expect(seconds).toBeLessThanOrEqual(1.25 * 10 + 1);
  });

  it("still has an endpoint when the mean rounds below equal loads and puts all of them over", () => {
    const ids = ["a", "b", "c", "d", "e"];
    const fleet = new Fleet(nonEmpty(ids.map((id) => ({ id, tokensPerSecond: 100 }))));
    for (const id of ids) fleet.send(id, requestProfile({ promptTokens: 0, expectedOutputTokens: 29 }));
    const choice = choose(fleet.candidates, "s", { boundFactor: 1, floorSeconds: 0 });
    const [first] = choice.considered;
    expect(first?.terms?.loadSeconds).toBeGreaterThan(first?.terms?.boundSeconds ?? 0);
    expect(ids).toContain(choice.chosen.endpoint.id);
  });

  it("sends requests without a session by load", () => {
    const fleet = fleetOf(3);
    fleet.run("e0", work);
    fleet.run("e2", work);
    const choice = choose(fleet.candidates, undefined);
    expect(choice.chosen.endpoint.id).toBe("e1");
    expect(choice.reason).toBe("no session key: lowest load");
  });

  describe("with hash modulo", () => {
    const modulo = { hash: "modulo" } as const;

    it.each([
      ["user-123-conv-456", "e0"],
      ["user-100", "e0"],
      ["user-200", "e1"],
      ["user-300", "e0"],
    ])("sends %s by its MD5 digest modulo three endpoints to %s", (key, id) => {
      expect(place(fleetOf(3).candidates, key, modulo)).toBe(id);
    });

    it("goes on to the next in the list when an endpoint is over its bound", () => {
      const fleet = fleetOf(3);
      times(10, () => fleet.run("e1", work));
      expect(place(fleet.candidates, "user-200", modulo)).toBe("e2");
    });
  });
});

function fleetOf(count: number): Fleet {
  return new Fleet(nonEmpty(times(count, (index) => ({ id: `e${index}`, tokensPerSecond: 1000 }))));
}

function choose(candidates: Candidates, sessionKey: string | undefined, { seed = 1, ...options }: Options = {}) {
  const policy = sessionAffinity.create(sessionAffinity.options.parse(options));
  const request = requestProfile({ promptTokens: 100, sessionKey });
  return policy.choose(request, candidates, policyContext({ random: seededRandom(seed) }));
}

function place(candidates: Candidates, sessionKey: string, options?: Options): string {
  return choose(candidates, sessionKey, options).chosen.endpoint.id;
}

interface Options {
  readonly seed?: number;
  readonly hash?: "rendezvous" | "modulo";
  readonly boundFactor?: number;
  readonly floorSeconds?: number;
}
