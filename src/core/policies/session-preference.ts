import type { Candidate, Candidates } from "../policy.ts";
import { md5 } from "./md5.ts";
import { absorb, uniform } from "./uniform-hash.ts";

/** How much a session wants an endpoint: the lowest is its own, the next its fallback, and so on. */
export type Preference = (candidate: Candidate) => number;

/**
 * Weighted rendezvous hashing: session and endpoint draw u in (0, 1) by their names, and the highest
 * -weight / ln(u) wins. Each endpoint gets sessions in proportion to its weight, and one that comes or
 * goes moves only its own. Compared as ln(-ln(u) / weight), lowest first: the same order, but neither
 * huge nor tiny weights leave the range of a number.
 */
export function rendezvousPreference(sessionKey: string): Preference {
  const session = absorb(sessionKey);
  return ({ endpoint }) => Math.log(-Math.log(uniform(absorb(endpoint.id, session)))) - Math.log(endpoint.weight);
}

/**
 * The textbook form: the MD5 digest as one big-endian integer modulo the number of candidates is the
 * position of the session's own; then the ones after it. Any change of the list moves most sessions.
 */
export function moduloPreference(sessionKey: string, candidates: Candidates): Preference {
  const count = candidates.length;
  let own = 0;
  for (const byte of md5(sessionKey)) own = (own * 256 + byte) % count;
  const positions = new Map(candidates.map((candidate, position) => [candidate, position]));
  return (candidate) => ((positions.get(candidate) ?? own) - own + count) % count;
}
