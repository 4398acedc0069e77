import { z } from "zod";
import type { Candidate, Policy, PolicyDefinition } from "../policy.ts";
import { leastBy } from "../select.ts";
import { forgetLeavers } from "./endpoint-memory.ts";

/**
 * Takes the endpoints in turn. Minimises nothing; fair only when all requests and all endpoints are
 * alike. The turn is kept by name, so an endpoint that is passed over does not hand its share to its
 * neighbour; who has had no turn yet is drawn, so that several balancers do not march in step.
 */
export const roundRobin: PolicyDefinition = {
  name: "round_robin",
  summary: "each endpoint in turn",
  score: "requests since its last turn, highest wins",
  options: z.strictObject({}),
  create: createRoundRobin,
};

function createRoundRobin(): Policy {
  /** Turn at which an endpoint was last chosen; absent: never. */
  const lastTurn = new Map<string, number>();
  let turn = 0;
  const waited = ({ endpoint }: Candidate): number => turn - (lastTurn.get(endpoint.id) ?? -1);
  return {
    choose(_request, candidates, { random }) {
      return {
        chosen: leastBy(candidates, (candidate) => -waited(candidate), random),
        considered: candidates.map((candidate) => ({ endpoint: candidate.endpoint.id, score: waited(candidate) })),
        reason: "longest since its last turn",
      };
    },
    routed({ chosen, candidates }) {
      lastTurn.set(chosen.endpoint.id, turn++);
      forgetLeavers(lastTurn, candidates);
    },
  };
}
