import { z } from "zod";
import type { Candidate, Policy, PolicyDefinition } from "../policy.ts";
import { leastBy } from "../select.ts";

/**
 * Fewest requests per configured weight, this one included: without it an idle endpoint of weight 1
 * would come before one of weight 10 that has a single request. Counts a prompt of 80,000 tokens like
 * one of 100, so it is fair only among like requests.
 */
export const leastConnections: PolicyDefinition = {
  name: "least_connections",
  summary: "fewest requests in flight per weight",
  score: "requests in flight, this one included, over weight; lowest wins",
  options: z.strictObject({}),
  create: createLeastConnections,
};

function createLeastConnections(): Policy {
  return {
    choose(_request, candidates, { random }) {
      return {
        chosen: leastBy(candidates, requestsPerWeight, random),
        considered: candidates.map((candidate) => ({
          endpoint: candidate.endpoint.id,
          score: requestsPerWeight(candidate),
          terms: { requests: candidate.account.requests },
        })),
        reason: "fewest requests for its weight",
      };
    },
  };
}

function requestsPerWeight({ account, endpoint }: Candidate): number {
  return (account.requests + 1) / endpoint.weight;
}
