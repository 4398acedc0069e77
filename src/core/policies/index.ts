import type { Policy, PolicyDefinition } from "../policy.ts";
import { leastConnections } from "./least-connections.ts";
import { leastDelay } from "./least-delay.ts";
import { powerOfTwo } from "./power-of-two.ts";
import { random } from "./random.ts";
import { roundRobin } from "./round-robin.ts";
import { sessionAffinity } from "./session-affinity.ts";
import { tokenAware } from "./token-aware.ts";
import { weightedRandom } from "./weighted-random.ts";
import { weightedRoundRobin } from "./weighted-round-robin.ts";

/** Every policy, in the order of the documentation. */
export const policyDefinitions: readonly PolicyDefinition[] = [
  leastDelay,
  tokenAware,
  sessionAffinity,
  powerOfTwo,
  leastConnections,
  weightedRandom,
  random,
  weightedRoundRobin,
  roundRobin,
];

/** The definition of `name`. @throws when there is none; the message lists those there are. */
export function findPolicy(name: string): PolicyDefinition {
  const found = policyDefinitions.find((definition) => definition.name === name);
  if (found === undefined) {
    const known = policyDefinitions.map((definition) => definition.name).join(", ");
    throw new RangeError(`unknown policy "${name}"; known policies: ${known}`);
  }
  return found;
}

/** The policy with `options`. @throws RangeError when either is wrong; the message says what would be right. */
export function createPolicy(policy: string | PolicyDefinition, options: unknown): Policy {
  const definition = typeof policy === "string" ? findPolicy(policy) : policy;
  const parsed = definition.options.safeParse(options);
  if (parsed.success) return definition.create(parsed.data);
  const problems = parsed.error.issues.map(({ path, message }) => {
    // "Too small: expected ...": the first half says nothing that the second does not.
    return `${["policyOptions", ...path].join(".")}: ${message.replace(/^.*?: (?=expected )/, "")}`;
  });
  throw new RangeError(`policy "${definition.name}": ${problems.join("; ")}`);
}
