import { relativePaces } from "./engine-pace.ts";
import type { EngineSpec } from "./fleet-spec.ts";
import { peerPolicies } from "./peers/index.ts";
import type { SimulationOptions } from "./simulation-options.ts";

/** What `simulate` is told of a policy. */
export type PolicySetup = Pick<SimulationOptions, "policy" | "policyOptions" | "whenFull" | "holding">;

/**
 * How a policy is run, whoever's it is. Peers that cannot learn how fast engines are and what their steps take are told,
 * for a fair comparison.
 */
export function policySetup(name: string, engines: readonly EngineSpec[]): PolicySetup {
  const peer = peerPolicies.find(({ definition }) => definition.name === name);
  if (peer === undefined) return { policy: name };
  const { definition, whenFull } = peer;
  const batchTokens = Object.fromEntries(
    engines.map(({ id, profile }) => [id, profile.coefficients.maxBatchTokens] as const),
  );
  return {
    policy: definition,
    policyOptions: { speeds: relativePaces(engines), batchTokens },
    whenFull,
    holding: UNBOUNDED,
  };
}

/** None of the peers' queues gives up on its own. */
const UNBOUNDED = { maxRequests: Number.POSITIVE_INFINITY, maxWaitMs: Number.POSITIVE_INFINITY };
