import { z } from "zod";
import { costOf, DECODE_WORK, PREFILL_WORK } from "../cost.ts";
import type { Candidate, Policy, PolicyDefinition } from "../policy.ts";
import { leastBy } from "../select.ts";

/**
 * At full batch a vLLM engine whose KV cache is filled by chat (contexts of 1,300 tokens, 100 to 200 still
 * to come) holds 10 to 20 s of work, one filled by long reasoning 90 to 250 s. A minute leaves chat three
 * times its worst, and is as long as most proxies wait for an answer.
 */
const DEFAULT_HORIZON_SECONDS = 60;

const options = z.strictObject({
  prefillWeight: z
    .number()
    .min(0)
    .max(10)
    .default(PREFILL_WORK)
    .describe("Work of one uncached prompt token that waits for prefill."),
  decodeWeight: z
    .number()
    .min(0)
    .max(10)
    .default(DECODE_WORK)
    .describe("Work of one output token still to be decoded."),
  line: z.number().min(0.01).max(10).default(0.95).describe("Load at which an endpoint takes no more requests."),
  horizonSeconds: z
    .number()
    .min(0.1)
    .max(3600)
    .default(DEFAULT_HORIZON_SECONDS)
    .describe("Seconds of work, at an endpoint's capacity, that are a load of 1."),
});

/**
 * Lowest token load after adding the request; endpoints at the line take nothing. Sees what requests
 * cost, which counts of requests do not; does not see what a request does to the others (least_delay does).
 */
export const tokenAware: PolicyDefinition = {
  name: "token_aware",
  summary: "lowest load in tokens, none at the saturation line",
  score: "load after adding the request, as a share of the horizon; lowest wins",
  options,
  create: createTokenAware,
};

function createTokenAware({ prefillWeight, decodeWeight, line, horizonSeconds }: z.infer<typeof options>): Policy {
  const share = ({ speed }: Candidate, prefillTokens: number, decodeTokens: number): number =>
    (prefillWeight * prefillTokens + decodeWeight * decodeTokens) / speed.tokensPerSecond / horizonSeconds;
  const load = (candidate: Candidate): number =>
    share(candidate, candidate.account.waitingPrefillTokens, candidate.account.outputTokens);
  return {
    hasRoom: (_request, candidate) => load(candidate) < line,
    choose(request, candidates, { random }) {
      const loadAfter = (candidate: Candidate): number => {
        const { prefillTokens, decodeTokens } = costOf(request, candidate.cachedTokens(request));
        return load(candidate) + share(candidate, prefillTokens, decodeTokens);
      };
      return {
        chosen: leastBy(candidates, loadAfter, random),
        considered: candidates.map((candidate) => ({
          endpoint: candidate.endpoint.id,
          score: loadAfter(candidate),
          terms: { load: load(candidate) },
        })),
        reason: "lowest load after adding the request",
      };
    },
  };
}
