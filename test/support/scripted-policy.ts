import { z } from "zod";
import { type Candidate, leastBy, type PolicyDefinition, type RequestProfile } from "../../src/core/index.ts";

/** What a scripted policy thinks of the endpoints; a test changes it as it goes. */
export class Script {
  /** By endpoint id; absent: 0. */
  readonly scores: Record<string, number> = {};
  /** Endpoints that can begin though something is in flight there. */
  readonly ready = new Set<string>();
  /** Endpoints without memory for any request, unless they are idle. */
  readonly cramped = new Set<string>();
  /** Endpoints that are no candidates for want of room. */
  readonly full = new Set<string>();

  /** A policy that does what the script says at the moment; held requests go shortest prompt first, 1 ms a token. */
  policy({ isLate = true, isBounded = false } = {}): PolicyDefinition {
    const score = ({ endpoint: { id } }: Candidate) => this.scores[id] ?? 0;
    const fits = (_: RequestProfile, { endpoint: { id }, account }: Candidate) =>
      account.requests === 0 || !this.cramped.has(id);
    const canBegin = (request: RequestProfile, candidate: Candidate) =>
      candidate.account.requests === 0 || (this.ready.has(candidate.endpoint.id) && fits(request, candidate));
    const key = ({ promptTokens }: RequestProfile, arrivedAtMs: number) => arrivedAtMs + promptTokens;
    return {
      name: "scripted",
      summary: "as the test says",
      score: "as the test says, lowest wins",
      options: z.strictObject({}),
      create: () => ({
        choose: (_request, candidates, { random }) => ({
          chosen: leastBy(candidates, score, random),
          considered: candidates.map((candidate) => ({ endpoint: candidate.endpoint.id, score: score(candidate) })),
          reason: "the test says so",
        }),
        ...(isLate && {
          lateBinding: { fits, canBegin, holdKey: (request, _candidate, arrivedAtMs) => key(request, arrivedAtMs) },
        }),
        ...(isBounded && {
          hasRoom: (_request, { endpoint: { id } }: Candidate) => !this.full.has(id),
          queueKey: key,
        }),
      }),
    };
  }
}
