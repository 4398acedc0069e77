import { describe, expect, it } from "vitest";
import { decodeStepMs, engineCoefficients, prefillMs } from "../core/index.ts";
import { ENGINE_PROFILES, type EngineProfile, engineProfile } from "./engine-profiles.ts";
import { stepMs } from "./step-time.ts";

function profileOf(name: string): EngineProfile {
  const profile = engineProfile(name);
  if (profile === undefined) throw new Error(name);
  return profile;
}

describe("stepMs", () => {
  it("adds the terms of the formula", () => {
    const profile: EngineProfile = {
      ...profileOf("llama8b-h100"),
      bend: 2,
      coefficients: engineCoefficients({
        stepMs: 1,
        weightsMs: 3,
        computeMs: 0.04,
        tokenMs: 0.01,
        pairMs: 0.001,
        contextMs: 0.0001,
        sequenceMs: 0.5,
        maxBatchTokens: 8192,
      }),
    };
    // 1 + sqrt(3^2 + 4^2) + 1 + 0.2 + 0.3 + 1
    expect(stepMs(profile, { tokens: 100, pairs: 200, contextTokens: 3000, decodes: 2 })).toBeCloseTo(8.5, 12);
  });

  it.each([
    ["llama8b-h100", 45.6],
    ["llama8b-a100", 126],
    ["llama70b-tp4-h100", 136],
  ])("takes the published time for 2,048 prompt tokens alone on %s", (name, publishedMs) => {
    const work = { tokens: 2048, pairs: 2048 ** 2 / 2, contextTokens: 0, decodes: 0 };
    // The published figures are rounded, and on the A100 the smooth bend adds about half a percent.
    expect(Math.abs(stepMs(profileOf(name), work) / publishedMs - 1)).toBeLessThan(0.01);
  });

  it.each(ENGINE_PROFILES.map((profile) => [profile.name, profile] as const))(
    "agrees with the balancer's sharp form far from the bend on %s",
    (_name, profile) => {
      const sharp = { ...profile, bend: 40 };
      const decode = stepMs(sharp, { tokens: 8, pairs: 0, contextTokens: 8000, decodes: 8 });
      expect(decode).toBeCloseTo(decodeStepMs(profile.coefficients, 8, 8000), 6);
      const prefill = stepMs(sharp, { tokens: 8192, pairs: 1e6, contextTokens: 0, decodes: 0 });
      expect(prefill).toBeCloseTo(profile.coefficients.stepMs + prefillMs(profile.coefficients, 8192, 1e6), 6);
    },
  );
});

describe("engineProfile", () => {
  it("knows nothing of other names", () => {
    expect(engineProfile("llama8b-h100")?.kvTokens).toBe(467_000);
    expect(engineProfile("abacus")).toBeUndefined();
  });
});
