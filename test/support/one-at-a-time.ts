import { z } from "zod";
import { leastBy, type PolicyDefinition } from "../../src/core/index.ts";

/**
 * A policy under which each endpoint takes one request at a time and the others are held, short prompts first.
 * @param counted What there may be one of: requests, or those without their first token.
 */
export function oneAtATime(counted: "requests" | "waitingRequests" = "requests"): PolicyDefinition {
  return {
    name: "one_at_a_time",
    summary: "one request at a time on each endpoint",
    score: "requests, lowest wins",
    options: z.strictObject({}),
    create: () => ({
      choose(_request, candidates, { random }) {
        const chosen = leastBy(candidates, ({ account, held }) => account.requests + held.requests, random);
        return { chosen, considered: [], reason: "fewest requests" };
      },
      lateBinding: {
        fits: () => true,
        canBegin: (_request, { account }) => account[counted] === 0,
        holdKey: ({ promptTokens }) => promptTokens,
      },
    }),
  };
}
