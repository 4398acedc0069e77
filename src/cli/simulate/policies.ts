import { policyDefinitions } from "../../core/index.ts";
import { peerPolicies } from "../../sim/index.ts";

const OWN: readonly string[] = policyDefinitions.map(({ name }) => name);
const PEERS: readonly string[] = peerPolicies.map(({ definition }) => definition.name);

/** Every policy that can be simulated, under the name that stands for its group; `all` stands for both. */
export const POLICY_GROUPS: readonly (readonly [group: string, names: readonly string[]])[] = [
  ["own", OWN],
  ["peers", PEERS],
];

const ALL: readonly string[] = [...OWN, ...PEERS];

/** Reads names with commas between them; each policy comes once. @throws RangeError when one is unknown. */
export function parsePolicies(text: string): string[] {
  return [...new Set(text.split(",").flatMap((name) => policiesOf(name.trim())))];
}

function policiesOf(name: string): readonly string[] {
  if (name === "all") return ALL;
  const group = POLICY_GROUPS.find(([each]) => each === name);
  if (group !== undefined) return group[1];
  if (ALL.includes(name)) return [name];
  throw new RangeError(`unknown policy "${name}"; known are all, own, peers, ${ALL.join(", ")}`);
}
