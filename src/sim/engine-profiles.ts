import { type EngineCoefficients, engineCoefficients, type MeasuredCoefficients } from "../core/index.ts";

/** Default tokens per KV block, as in vLLM. */
export const BLOCK_TOKENS = 16;

/** One model on one GPU set-up, as an engine with vLLM's defaults runs it. */
export interface EngineProfile {
  readonly name: string;
  /** What the numbers stand for, in words a user reads. */
  readonly summary: string;
  readonly coefficients: EngineCoefficients;
  /** Exponent p of the smooth step floor G(m) = (weights^p + (compute m)^p)^(1/p); the larger, the sharper the bend. */
  readonly bend: number;
  /** Size of the KV cache in tokens. */
  readonly kvTokens: number;
  /** Requests that run at the same time at most. */
  readonly maxSequences: number;
}

/** Per running sequence: the per-request regression constant of BLIS, the same for every row. */
const SEQUENCE_MS = 0.0044;

/** vLLM's defaults for a GPU of at least 70 GiB other than the A100. */
const LARGE = { maxBatchTokens: 8192, maxSequences: 1024 };
/** vLLM's defaults for every other GPU, the A100 included. */
const SMALL = { maxBatchTokens: 2048, maxSequences: 256 };

/** Bend fitted to kernel tables at 128 to 512 tokens, where the sharp maximum is 14 to 22 % too low. */
const HOPPER_BEND = 3;
const AMPERE_BEND = 2;

type Row = Omit<MeasuredCoefficients, "maxBatchTokens" | "sequenceMs"> & { readonly kvTokens: number };

function profile(name: string, summary: string, bend: number, limits: typeof LARGE, row: Row): EngineProfile {
  const { kvTokens, ...measured } = row;
  return {
    name,
    summary,
    coefficients: engineCoefficients({ ...measured, sequenceMs: SEQUENCE_MS, maxBatchTokens: limits.maxBatchTokens }),
    bend,
    kvTokens,
    maxSequences: limits.maxSequences,
  };
}

/**
 * The measured rows: weights, compute, attention and all-reduce from NVIDIA AIConfigurator's kernel tables,
 * element-wise work from Vidur's MLP profiles (docs/engine.md).
 */
export const ENGINE_PROFILES: readonly EngineProfile[] = [
  profile("llama8b-h100", "Llama 3 8B on one H100", HOPPER_BEND, LARGE, {
    stepMs: 1.5,
    weightsMs: 5.7,
    computeMs: 0.0174,
    tokenMs: 0.0033,
    pairMs: 0.79e-6,
    contextMs: 43e-6,
    kvTokens: 467_000,
  }),
  profile("llama8b-a100", "Llama 3 8B on one A100 of 80 GB", AMPERE_BEND, SMALL, {
    stepMs: 2.0,
    weightsMs: 9.85,
    computeMs: 0.0522,
    tokenMs: 0.0055,
    pairMs: 2.98e-6,
    contextMs: 83e-6,
    kvTokens: 467_000,
  }),
  profile("llama8b-h200", "Llama 3 8B on one H200", HOPPER_BEND, LARGE, {
    stepMs: 1.3,
    weightsMs: 4.2,
    computeMs: 0.0186,
    tokenMs: 0.0023,
    pairMs: 0.8e-6,
    contextMs: 33e-6,
    kvTokens: 825_000,
  }),
  profile("llama70b-tp4-h100", "Llama 3 70B on four H100", HOPPER_BEND, LARGE, {
    stepMs: 4.0,
    weightsMs: 12.9,
    computeMs: 0.0405,
    tokenMs: 0.0228,
    pairMs: 0.99e-6,
    contextMs: 30e-6,
    kvTokens: 418_000,
  }),
  profile("llama70b-tp4-h200", "Llama 3 70B on four H200", HOPPER_BEND, LARGE, {
    stepMs: 3.6,
    weightsMs: 9.7,
    computeMs: 0.0425,
    tokenMs: 0.0217,
    pairMs: 0.99e-6,
    contextMs: 23e-6,
    kvTokens: 1_000_000,
  }),
  profile("llama70b-tp4-a100", "Llama 3 70B on four A100 of 80 GB", AMPERE_BEND, SMALL, {
    stepMs: 5.4,
    weightsMs: 25.3,
    computeMs: 0.124,
    tokenMs: 0.0365,
    pairMs: 3.72e-6,
    contextMs: 59e-6,
    kvTokens: 418_000,
  }),
  profile("llama70b-tp8-h100", "Llama 3 70B on eight H100", HOPPER_BEND, LARGE, {
    stepMs: 3.6,
    weightsMs: 7.1,
    computeMs: 0.0213,
    tokenMs: 0.0205,
    pairMs: 0.51e-6,
    contextMs: 15e-6,
    kvTokens: 1_300_000,
  }),
];

/** The profile of that name; undefined: there is none. */
export function engineProfile(name: string): EngineProfile | undefined {
  return ENGINE_PROFILES.find((candidate) => candidate.name === name);
}
