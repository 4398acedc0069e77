import type { Candidates } from "../policy.ts";

/** More endpoints than any fleet has; names that come and go with every restart add up to more in months. */
const MAX_REMEMBERED = 4096;

/** Keeps what a policy remembers by endpoint id from growing for ever: past a bound, only `candidates` stay. */
export function forgetLeavers(memory: Map<string, number>, candidates: Candidates): void {
  if (memory.size <= MAX_REMEMBERED) return;
  const present = new Set(candidates.map(({ endpoint }) => endpoint.id));
  for (const id of memory.keys()) if (!present.has(id)) memory.delete(id);
}
