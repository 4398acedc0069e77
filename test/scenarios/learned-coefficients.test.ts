import { describe, expect, it } from "vitest";
import { createBalancer, type EngineSpeed, endpoint, prefillMs } from "../../src/core/index.ts";
import { ENGINE_PROFILES, type EngineProfile } from "../../src/sim/index.ts";
import { type Delivery, serveWaves } from "../support/engine-fleet.ts";

/** Running requests, and context tokens between them: from one short chat to a full cache and the largest batches. */
const STEPS = [
  [1, 1000],
  [8, 20_000],
  [32, 50_000],
  [32, 200_000],
  [64, 100_000],
  [64, 400_000],
  [128, 200_000],
  [256, 100_000],
  [256, 400_000],
] as const;

/** Tokens, and attention pairs. */
const PROMPTS = [
  [1000, 0.5e6],
  [4000, 8e6],
  [16_000, 128e6],
] as const;

/**
 * 20 %; other seeds come to 17 at their worst point. Of the largest batches some 10 are the engine's bend, which is
 * round where the belief's is sharp; of prefill, first tokens that a burst holds back.
 */
const TOLERANCE = Math.log(1.2);

const FOR_MS = 6 * 60_000;

const DELIVERIES: readonly (readonly [string, Delivery])[] = [
  ["every token comes when it is generated", { jitter: 0, coalesced: 0 }],
  ["steps vary by 20 % and half of the streams come in bursts", { jitter: 0.2, coalesced: 0.5 }],
];

/** As the engine has it, its round bend included. */
function stepMs({ coefficients, bend }: EngineProfile, sequences: number, contextTokens: number): number {
  const { stepMs: fixedMs, weightsMs, computeMs, tokenMs, contextMs, sequenceMs } = coefficients;
  const floorMs = (weightsMs ** bend + (computeMs * sequences) ** bend) ** (1 / bend);
  return fixedMs + floorMs + contextMs * contextTokens + (tokenMs + sequenceMs) * sequences;
}

/** The point at which the belief is furthest from the truth, and by how much, as a logarithm. */
function worstOf(speed: EngineSpeed, profile: EngineProfile): { readonly at: string; readonly error: number } {
  const errors = [
    ...STEPS.map(([sequences, contextTokens]) => ({
      at: `a step of ${sequences} requests with ${contextTokens} tokens`,
      error: Math.log(speed.decodeStepMs(sequences, contextTokens) / stepMs(profile, sequences, contextTokens)),
    })),
    ...PROMPTS.map(([tokens, pairs]) => ({
      at: `a prefill of ${tokens} tokens`,
      error: Math.log(speed.prefillMs(tokens, pairs) / prefillMs(profile.coefficients, tokens, pairs)),
    })),
  ];
  return errors.reduce((worst, each) => (Math.abs(each.error) > Math.abs(worst.error) ? each : worst));
}

function learned(profiles: readonly EngineProfile[], policy: string, delivery: Delivery): readonly EngineSpeed[] {
  const balancer = createBalancer({ policy, endpoints: profiles.map((_, i) => endpoint({ id: `engine-${i}` })) });
  serveWaves(balancer, profiles, delivery, FOR_MS, 1);
  return balancer.members.map(({ speed }) => speed);
}

function expectTrue(speed: EngineSpeed, profile: EngineProfile): void {
  const { at, error } = worstOf(speed, profile);
  expect(Math.abs(error), `${profile.name}, ${at}: ${error.toFixed(2)}`).toBeLessThan(TOLERANCE);
}

describe.each(DELIVERIES)("from streams alone, where %s", { timeout: 120_000 }, (_, delivery) => {
  it.each(ENGINE_PROFILES.map((profile) => [profile.name, profile] as const))(
    "all that %s does is known",
    (__, profile) => {
      for (const speed of learned([profile, profile], "round_robin", delivery)) expectTrue(speed, profile);
    },
  );

  it("all that each engine of a mixed fleet does is known", () => {
    const names = [
      ...Array<string>(4).fill("llama8b-h100"),
      ...Array<string>(4).fill("llama8b-a100"),
      ...Array<string>(2).fill("llama70b-tp4-h100"),
    ];
    const profiles = names.map((name) => ENGINE_PROFILES.find((profile) => profile.name === name) as EngineProfile);
    const speeds = learned(profiles, "weighted_random", delivery);
    for (const [i, profile] of profiles.entries()) expectTrue(speeds[i] as EngineSpeed, profile);
  });
});
