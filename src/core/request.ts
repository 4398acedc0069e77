import { fixedOutput, type OutputExpectation } from "./output-expectation.ts";
import type { Prefix } from "./prefix-hash.ts";

/** How urgent a request is, against others that are held: the urgent go first, and the others rise by waiting. */
export type Priority = "low" | "normal" | "high";

/** What is known of a request before it is routed. */
export interface RequestProfile {
  /** The name the endpoint knows the model by; aliases are already resolved. */
  readonly model: string;
  /** The API called; output lengths are learned by it. */
  readonly route: string;
  /** Estimated from the body, cached part included. */
  readonly promptTokens: number;
  /** UTF-8 bytes of the text `promptTokens` was estimated from; undefined: it was not estimated from text alone. */
  readonly textBytes: number | undefined;
  /** The client's bound on the output; undefined: none. */
  readonly maxOutputTokens: number | undefined;
  /** How many output tokens to expect, now and after some were generated. */
  readonly output: OutputExpectation;
  /** False: no token is seen before the end, so its progress is projected. */
  readonly isStreaming: boolean;
  /** Undefined: nothing to match against the prefix cache. */
  readonly prefix: Prefix | undefined;
  /** Undefined: the client gave no usable key. */
  readonly sessionKey: string | undefined;
  /** Who sent it: tenants that are held get equal shares. Undefined: nobody said, which counts as one tenant. */
  readonly tenant: string | undefined;
  readonly priority: Priority;
  /** How long its client waits for an answer, from its arrival, in ms; undefined: not told. */
  readonly patienceMs: number | undefined;
}

/**
 * Fills in what a caller leaves out: streaming, 256 output tokens or what the client allows, normal priority, no prefix,
 * no session, no tenant, no end to its patience.
 */
export function requestProfile(
  known: Pick<RequestProfile, "promptTokens"> & Partial<RequestProfile> & { readonly expectedOutputTokens?: number },
): RequestProfile {
  const expectedTokens = Math.min(
    known.expectedOutputTokens ?? DEFAULT_OUTPUT_TOKENS,
    known.maxOutputTokens ?? Number.POSITIVE_INFINITY,
  );
  return {
    model: known.model ?? "",
    route: known.route ?? "",
    promptTokens: known.promptTokens,
    textBytes: known.textBytes,
    maxOutputTokens: known.maxOutputTokens,
    output: known.output ?? fixedOutput(expectedTokens),
    isStreaming: known.isStreaming ?? true,
    prefix: known.prefix,
    sessionKey: known.sessionKey,
    tenant: known.tenant,
    priority: known.priority ?? "normal",
    patienceMs: known.patienceMs,
  };
}

/** Prior mean output length before anything was learned (docs/policies/least_delay.md). */
export const DEFAULT_OUTPUT_TOKENS = 256;
