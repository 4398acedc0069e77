import { z } from "zod";
import type { Candidate, Candidates, Policy, PolicyDefinition } from "../policy.ts";
import { leastBy } from "../select.ts";
import { forgetLeavers } from "./endpoint-memory.ts";

/**
 * Turns in proportion to the configured weights, spread out: weights 20 and 10 give a b a, not 20 times a.
 * Each request owes every candidate its share of one turn; who is owed most gets it, and pays the
 * whole turn. The smooth form of nginx, counted in turns so that no weight can overflow it.
 */
export const weightedRoundRobin: PolicyDefinition = {
  name: "weighted_round_robin",
  summary: "turns in proportion to the configured weights, evenly spread",
  score: "turns owed, highest wins",
  options: z.strictObject({}),
  create: createWeightedRoundRobin,
};

function createWeightedRoundRobin(): Policy {
  /** Turns an endpoint is owed; negative: it is ahead of its share; absent: 0. */
  const owed = new Map<string, number>();
  const owedTo = ({ endpoint }: Candidate): number => owed.get(endpoint.id) ?? 0;
  return {
    choose(_request, candidates, { random }) {
      const share = turnShares(candidates);
      const score = (candidate: Candidate): number => owedTo(candidate) + share(candidate);
      return {
        chosen: leastBy(candidates, (candidate) => -score(candidate), random),
        considered: candidates.map((candidate) => ({
          endpoint: candidate.endpoint.id,
          score: score(candidate),
          terms: { share: share(candidate) },
        })),
        reason: "furthest behind its share of turns",
      };
    },
    routed({ chosen, candidates }) {
      const share = turnShares(candidates);
      for (const candidate of candidates) owed.set(candidate.endpoint.id, owedTo(candidate) + share(candidate));
      owed.set(chosen.endpoint.id, owedTo(chosen) - 1);
      forgetLeavers(owed, candidates);
    },
  };
}

/** Each candidate's share of one turn. Against the largest weight first: the sum of huge ones is not a number. */
function turnShares(candidates: Candidates): (candidate: Candidate) => number {
  const largest = Math.max(...candidates.map(({ endpoint }) => endpoint.weight));
  let total = 0;
  for (const { endpoint } of candidates) total += endpoint.weight / largest;
  return ({ endpoint }) => endpoint.weight / largest / total;
}
