import { z } from "zod";
import type { Candidate, Candidates, Policy, PolicyDefinition } from "../policy.ts";
import { leastBy } from "../select.ts";
import { moduloPreference, type Preference, rendezvousPreference } from "./session-preference.ts";
import { workSeconds, workSecondsAfter } from "./work-seconds.ts";

const options = z.strictObject({
  hash: z
    .enum(["rendezvous", "modulo"])
    .default("rendezvous")
    .describe(
      "How a session orders the endpoints. `modulo` is the textbook form, which moves most sessions on any change.",
    ),
  boundFactor: z
    .number()
    .min(1)
    .max(100)
    .default(1.25)
    .describe("A session leaves an endpoint that is loaded above this multiple of the mean load."),
  floorSeconds: z
    .number()
    .min(0)
    .max(3600)
    .default(2)
    .describe("Load, in seconds of work, up to which no session leaves, whatever the mean."),
});

/**
 * A session's requests go to one endpoint, whose prefix cache then holds the conversation. Which one
 * follows from the key alone, so balancers agree without talking and an endpoint that returns gets its
 * sessions back. Bounded: an overloaded endpoint is passed over in the session's own order of
 * preference (consistent hashing with bounded loads, Mirrokni et al. 2018).
 */
export const sessionAffinity: PolicyDefinition = {
  name: "session_affinity",
  summary: "each session to its own endpoint while that is not overloaded",
  score: "the session's preference, lowest within the bound wins; no session: seconds of work after adding it",
  options,
  create: createSessionAffinity,
};

function createSessionAffinity({ hash, boundFactor, floorSeconds }: z.infer<typeof options>): Policy {
  const preferenceOf = hash === "modulo" ? moduloPreference : rendezvousPreference;
  return {
    choose(request, candidates, { random }) {
      const isSessionless = request.sessionKey === undefined;
      const boundSeconds = Math.max(floorSeconds, boundFactor * meanWorkSeconds(candidates));
      const score: Preference = isSessionless
        ? (candidate) => workSecondsAfter(request, candidate)
        : preferenceOf(request.sessionKey, candidates);
      // With a factor near 1 rounding can put all of them over: then the least loaded is the only one left.
      const [within = leastBy(candidates, workSeconds, random), ...others] = candidates.filter(
        (candidate) => workSeconds(candidate) <= boundSeconds,
      );
      const chosen = leastBy(isSessionless ? candidates : [within, ...others], score, random);
      return {
        chosen,
        considered: candidates.map((candidate) => ({
          endpoint: candidate.endpoint.id,
          score: score(candidate),
          terms: { loadSeconds: workSeconds(candidate), boundSeconds },
        })),
        reason: isSessionless ? "no session key: lowest load" : reasonFor(chosen, leastBy(candidates, score, random)),
      };
    },
  };
}

function reasonFor(chosen: Candidate, preferred: Candidate): string {
  if (chosen === preferred) return "the session's own endpoint";
  return `the session's next choice: ${preferred.endpoint.id} is over its load bound`;
}

/** Mean load weighted by capacity: the fleet's work over the fleet's capacity. */
function meanWorkSeconds(candidates: Candidates): number {
  let work = 0;
  let capacity = 0;
  for (const candidate of candidates) {
    capacity += candidate.speed.tokensPerSecond;
    work += workSeconds(candidate) * candidate.speed.tokensPerSecond;
  }
  return work / capacity;
}
