import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Candidates, policyDefinitions, seededRandom } from "../../src/core/index.ts";
import { peerPolicies } from "../../src/sim/index.ts";
import { type CandidateFacts, candidatesOf } from "../support/candidate.ts";
import { nonEmpty, tally, times } from "../support/fleet.ts";
import { blocks, chosenBy, createPeer, idChosenBy, routeTo } from "../support/peer.ts";

/** Policies that score only part of the candidates, and why. */
const SCORES_SOME: Readonly<Record<string, string>> = {
  smg_power_of_two: "compares only the two it drew",
};

const names = peerPolicies.map(({ definition }) => definition.name);

const anyState: fc.Arbitrary<CandidateFacts> = fc.record({
  id: fc.constant(""),
  account: fc
    .record({ waiting: fc.nat({ max: 5 }), running: fc.nat({ max: 40 }), prefill: fc.constantFrom(0, 300, 90_000) })
    .map(({ waiting, running, prefill }) => ({
      requests: waiting + running,
      waitingRequests: waiting,
      runningRequests: running,
      waitingPrefillTokens: waiting === 0 ? 0 : prefill,
      waitingPrefillPairs: waiting === 0 ? 0 : prefill ** 2 / 2,
      waitingPromptTokens: waiting === 0 ? 0 : 2 * prefill,
      contextTokens: running * 900,
    })),
  signals: fc.record({
    runningRequests: fc.option(fc.nat({ max: 40 }), { nil: undefined }),
    waitingRequests: fc.option(fc.nat({ max: 9 }), { nil: undefined }),
    kvUsedRatio: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
  }),
  kvTokens: fc.constantFrom(0, 5000, 500_000),
  kvCapacityTokens: fc.constantFrom(1000, 467_000),
  cachedTokens: fc.constantFrom(0, 150, 100_000),
});

const anyFleet = fc.array(anyState, { minLength: 1, maxLength: 8 }).map((states) => fleetOf(states));

const anyRequest = fc
  .array(fc.integer({ min: 1, max: 3 }), { maxLength: 6 })
  .map((path) => blocks(...path.map((_, depth) => Number(path.slice(0, depth + 1).join("")))));

function fleetOf(states: readonly CandidateFacts[]): Candidates {
  return candidatesOf(...nonEmpty(states.map((state, index) => ({ ...state, id: `e${index}` }))));
}

describe("comparison policies", () => {
  it("have names of their own, also against the product's", () => {
    const all = [...names, ...policyDefinitions.map(({ name }) => name)];
    expect(new Set(all).size).toBe(all.length);
  });

  it.each(peerPolicies.map((peer) => [peer.definition.name, peer] as const))(
    "%s holds exactly if its class does",
    (name, peer) => {
      const holds = createPeer(name).hasRoom !== undefined;
      expect([peer.class !== "plain", peer.whenFull === "hold"]).toEqual([holds, holds]);
    },
  );
});

describe.each(peerPolicies.map(({ definition }) => [definition.name, definition] as const))(
  "%s",
  (name, definition) => {
    it("says what it does and what its score is", () => {
      expect(name).toMatch(/^[a-z][a-z0-9._]*$/);
      expect(definition.summary).not.toBe("");
      expect(definition.score).not.toBe("");
    });

    it("refuses options that cannot be meant", () => {
      for (const bad of [
        { nonsense: 1 },
        { speeds: { a: 0 } },
        { speeds: { a: Number.NaN } },
        { batchTokens: { a: -1 } },
      ]) {
        expect(definition.options.safeParse(bad).success).toBe(false);
      }
    });

    it("chooses a candidate, explained by finite scores, and the same when asked again, in any state of any fleet", () => {
      fc.assert(
        fc.property(anyFleet, fc.array(anyRequest, { maxLength: 5 }), anyRequest, (candidates, sent, asked) => {
          const policy = createPeer(name);
          sent.forEach((request, index) => {
            chosenBy(policy, request, candidates, index);
            routeTo(policy, `e${index % candidates.length}`, request, candidates);
          });
          const choice = chosenBy(policy, asked, candidates, 100);
          expect(candidates).toContain(choice.chosen);
          expect(choice.reason).not.toBe("");
          const ids = choice.considered.map(({ endpoint }) => endpoint);
          expect(ids).toContain(choice.chosen.endpoint.id);
          if (!(name in SCORES_SOME)) expect(ids).toEqual(candidates.map(({ endpoint }) => endpoint.id));
          for (const { score, terms } of choice.considered) {
            for (const value of [score, ...Object.values(terms ?? {})]) expect(value).toSatisfy(Number.isFinite);
          }
          expect(chosenBy(policy, asked, candidates, 100)).toEqual(choice);
        }),
        { seed: 1, numRuns: 100 },
      );
    });

    it("scores an endpoint the same wherever it is listed", () => {
      if (name in SCORES_SOME) return;
      fc.assert(
        fc.property(anyFleet, anyRequest, (candidates, asked) => {
          const policy = createPeer(name);
          routeTo(policy, "e0", asked, candidates);
          const scores = (order: Candidates) =>
            Object.fromEntries(
              chosenBy(policy, asked, order).considered.map(({ endpoint, score }) => [endpoint, score]),
            );
          expect(scores(nonEmpty(candidates.toReversed()))).toEqual(scores(candidates));
        }),
        { seed: 2, numRuns: 50 },
      );
    });

    it("draws ties evenly", () => {
      const policy = createPeer(name);
      const fleet = candidatesOf({ id: "a" }, { id: "b" }, { id: "c" }, { id: "d" });
      const random = seededRandom(4);
      const context = { nowMs: 0, random, arrivedAtMs: 0, urgency: 0, place: undefined };
      const counts = tally(times(4000, () => policy.choose(blocks(), fleet, context).chosen.endpoint.id));
      // Binomial, n = 4000, p = 1/4: deviation 27; four of them, and a ring's arcs differ by 1/16 of 1000.
      for (const { endpoint } of fleet) expect(Math.abs((counts[endpoint.id] ?? 0) - 1000)).toBeLessThan(4 * 68);
    });

    it("takes the only one there is", () => {
      expect(idChosenBy(createPeer(name), blocks(1), candidatesOf({ id: "only" }))).toBe("only");
    });
  },
);
