import { decodeStepMs, prefillMs } from "../core/index.ts";
import type { EngineSpec } from "./fleet-spec.ts";

/**
 * Requests per second of an engine on a middling request of public traces, in a batch that is neither idle nor full: what
 * an operator who knows the hardware would weigh it by.
 */
export function paceOf({ profile: { coefficients }, speed }: EngineSpec): number {
  const promptMs = prefillMs(coefficients, PROMPT_TOKENS, PROMPT_TOKENS ** 2 / 2);
  const context = BATCH * (PROMPT_TOKENS + OUTPUT_TOKENS / 2);
  const answerMs = (OUTPUT_TOKENS / BATCH) * decodeStepMs(coefficients, BATCH, context);
  return (1000 * speed) / (promptMs + answerMs);
}

const PROMPT_TOKENS = 2_000;
const OUTPUT_TOKENS = 250;
const BATCH = 32;

/** Paces of a fleet by id, the fastest engine's being 1. */
export function relativePaces(engines: readonly EngineSpec[]): Record<string, number> {
  const fastest = Math.max(...engines.map(paceOf));
  return Object.fromEntries(engines.map((engine) => [engine.id, paceOf(engine) / fastest]));
}
