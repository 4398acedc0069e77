import { type ZodType, z } from "zod";
import type { Candidate, Policy, PolicyDefinition } from "../../core/index.ts";

/** What every comparison policy can be told of a mixed fleet. */
export interface PeerOptions {
  /** How fast an endpoint is against the others, by its id; 1 where absent. Counts and loads are divided by it. */
  readonly speeds: Readonly<Record<string, number>>;
  /** Tokens one step of an endpoint's engine takes, by its id; 8,192 where absent. */
  readonly batchTokens: Readonly<Record<string, number>>;
}

/** A rule that somebody else published, for comparison in simulations only. */
export interface PeerPolicy {
  readonly definition: PolicyDefinition<PeerOptions>;
  /**
   * `plain`: sends at once. `own_hold`: holds as the project's own queue does. `expert_hold`: a published choice with
   * the hold a strong engineer would put before it.
   */
  readonly class: "plain" | "own_hold" | "expert_hold";
  /** What the balancer is to do when no endpoint has room. */
  readonly whenFull: "refuse" | "hold";
}

const options: ZodType<PeerOptions> = z.strictObject({
  speeds: z
    .record(z.string(), z.number().positive().max(1e6))
    .default({})
    .describe("How fast each endpoint is against the others; 1 where absent."),
  batchTokens: z
    .record(z.string(), z.number().positive().max(1e9))
    .default({})
    .describe("Tokens one step of each endpoint's engine takes; 8,192 where absent."),
});

/** Speed of a candidate against the others. */
export type SpeedOf = (candidate: Candidate) => number;

/** Tokens one step of a candidate's engine takes. */
export type BatchTokensOf = (candidate: Candidate) => number;

/** The default of vLLM on accelerators of 70 GB and more. */
const DEFAULT_BATCH_TOKENS = 8192;

/** What one peer file says of a rule. */
export interface PeerRule {
  readonly name: string;
  readonly summary: string;
  readonly score: string;
  create(speedOf: SpeedOf, batchTokensOf: BatchTokensOf): Policy;
}

/** A rule that sends at once. */
export function plainPeer(rule: PeerRule): PeerPolicy {
  return { definition: definitionOf(rule), class: "plain", whenFull: "refuse" };
}

/** A rule whose requests wait until there is room. */
export function holdingPeer(kind: "own_hold" | "expert_hold", rule: PeerRule): PeerPolicy {
  return { definition: definitionOf(rule), class: kind, whenFull: "hold" };
}

function definitionOf({ name, summary, score, create }: PeerRule): PolicyDefinition<PeerOptions> {
  return {
    name,
    summary,
    score,
    options,
    create: ({ speeds, batchTokens }) =>
      create(
        ({ endpoint }) => speeds[endpoint.id] ?? 1,
        ({ endpoint }) => batchTokens[endpoint.id] ?? DEFAULT_BATCH_TOKENS,
      ),
  };
}
