import { describe, expect, it } from "vitest";
import { decodeStepMs, PRIOR_COEFFICIENTS, prefillMs } from "./engine-coefficients.ts";
import { type DecodeStretch, EngineSpeed, SpeedScales } from "./engine-speed.ts";

const STRETCH: DecodeStretch = {
  tokens: 10,
  sequences: 8,
  contextTokens: 8000,
  prefillTokens: 0,
  prefillPairs: 0,
  prefillSteps: 0,
};

const STRETCH_MS = 10 * decodeStepMs(PRIOR_COEFFICIENTS, 8, 8000);

const PROMPT = { tokens: 2000, pairs: 2e6, sequences: 8, contextTokens: 8000 };

/** What the prior says of that prompt: its compute, and the step beside the weights, whose reading is hidden. */
const PROMPT_MS =
  prefillMs(PRIOR_COEFFICIENTS, 2000, 2e6) + decodeStepMs(PRIOR_COEFFICIENTS, 8, 8000) - PRIOR_COEFFICIENTS.weightsMs;

function speed(pool: SpeedScales = new SpeedScales(), tokensPerSecond?: number): EngineSpeed {
  return new EngineSpeed(pool, tokensPerSecond);
}

function times(count: number, act: () => void): void {
  for (let i = 0; i < count; i++) act();
}

describe("EngineSpeed", () => {
  it("is the prior while nothing was seen", () => {
    const engine = speed();
    expect(engine.coefficients).toEqual(PRIOR_COEFFICIENTS);
    expect([engine.decodeScale, engine.prefillScale, engine.samples]).toEqual([1, 1, 0]);
    // 32 requests of 1,024 tokens: 7.2 + 1.41 + 0.25 ms a step.
    expect(engine.tokensPerSecond).toBeCloseTo(32_000 / 8.86, -1);
  });

  it.each([0.1, 1, 3, 50])("learns that decoding takes %d times the prior's time, prefill with it", (scale) => {
    const engine = speed();
    times(5, () => engine.observeDecode(STRETCH, scale * STRETCH_MS));
    expect(engine.decodeScale).toBeCloseTo(scale, 9);
    expect(engine.prefillScale).toBeCloseTo(scale, 9);
    expect(engine.tokensPerSecond).toBeCloseTo(speed().tokensPerSecond / scale, 6);
    expect(engine.decodeStepMs(8, 8000)).toBeCloseTo((scale * STRETCH_MS) / 10, 9);
    expect(engine.samples).toBe(5);
  });

  it("learns prefill apart from decoding, and its compute with it", () => {
    const engine = speed();
    times(50, () => engine.observeDecode(STRETCH, 2 * STRETCH_MS));
    const ownMs = prefillMs(PRIOR_COEFFICIENTS, 2000, 2e6);
    times(50, () => engine.observePrefill(PROMPT, 6 * ownMs + 2 * (PROMPT_MS - ownMs)));
    expect(engine.decodeScale).toBeCloseTo(2, 6);
    expect(engine.prefillScale).toBeCloseTo(6, 6);
    expect(engine.prefillMs(1000, 5e5)).toBeCloseTo(6 * prefillMs(PRIOR_COEFFICIENTS, 1000, 5e5), 6);
    expect(engine.coefficients.computeMs).toBeCloseTo(6 * PRIOR_COEFFICIENTS.computeMs, 9);
    expect(engine.coefficients.weightsMs).toBeCloseTo(2 * PRIOR_COEFFICIENTS.weightsMs, 9);
  });

  it("takes a new endpoint to be like its pool, and comes to know it by its own samples", () => {
    const pool = new SpeedScales();
    const slow = speed(pool);
    times(100, () => slow.observeDecode(STRETCH, 50 * STRETCH_MS));
    const fresh = speed(pool);
    expect(fresh.decodeScale).toBeCloseTo(50, 6);
    times(40, () => fresh.observeDecode(STRETCH, STRETCH_MS));
    expect(fresh.decodeScale).toBeLessThan(1.5);
    expect(slow.decodeScale).toBeGreaterThan(45);
  });

  it("keeps its coefficients at hand until anything in the pool is observed", () => {
    const pool = new SpeedScales();
    const [one, other] = [speed(pool), speed(pool)];
    const before = one.coefficients;
    expect(one.coefficients).toBe(before);
    other.observeDecode(STRETCH, 3 * STRETCH_MS);
    expect(one.coefficients.weightsMs).toBeCloseTo(3 * PRIOR_COEFFICIENTS.weightsMs, 9);
  });

  it("prefers a configured capacity, until it is taken back", () => {
    const engine = speed(new SpeedScales(), 100);
    times(5, () => engine.observeDecode(STRETCH, 3 * STRETCH_MS));
    expect(engine.tokensPerSecond).toBe(100);
    engine.configure(undefined);
    expect(engine.tokensPerSecond).toBeCloseTo(speed().tokensPerSecond / 3, 6);
    engine.configure(700);
    expect(engine.tokensPerSecond).toBe(700);
  });

  describe("of a stretch that prefill shared", () => {
    const shared = { ...STRETCH, tokens: 20, prefillTokens: 2000, prefillPairs: 2e6, prefillSteps: 1 };
    // One of the 20 steps held the prompt; it reads the weights once, for all.
    const sharedMs = 2 * STRETCH_MS + prefillMs(PRIOR_COEFFICIENTS, 2000, 2e6) - PRIOR_COEFFICIENTS.weightsMs;

    it("learns both as one while no prefill was seen alone", () => {
      const engine = speed();
      times(5, () => engine.observeDecode(shared, 7 * sharedMs));
      expect(engine.decodeScale).toBeCloseTo(7, 9);
    });

    it("leaves prefill its part once that is known", () => {
      const engine = speed();
      times(30, () => engine.observePrefill(PROMPT, PROMPT_MS));
      times(60, () => engine.observeDecode(shared, sharedMs + 2 * STRETCH_MS));
      expect(engine.decodeScale).toBeCloseTo(2, 1);
    });

    it("learns nothing where prefill had most of it", () => {
      const engine = speed();
      times(30, () => engine.observePrefill(PROMPT, PROMPT_MS));
      const before = engine.decodeScale;
      engine.observeDecode({ ...shared, tokens: 2 }, sharedMs - 1.8 * STRETCH_MS);
      expect(engine.decodeScale).toBe(before);
    });
  });

  it("learns nothing of decoding from a batch that compute slowed down", () => {
    const engine = speed();
    engine.observeDecode({ ...STRETCH, sequences: 1000 }, 10 * decodeStepMs(PRIOR_COEFFICIENTS, 1000, 8000));
    expect(engine.samples).toBe(0);
  });

  it("learns nothing of prefill from a prompt that hides behind the reading of the weights", () => {
    const engine = speed();
    engine.observePrefill({ tokens: 200, pairs: 20_000, sequences: 0, contextTokens: 0 }, 9);
    expect(engine.samples).toBe(0);
  });

  it("finds its way down from a pool that made it look slow, by prefill alone", () => {
    const pool = new SpeedScales();
    const slow = speed(pool);
    times(100, () => slow.observeDecode(STRETCH, 50 * STRETCH_MS));
    times(100, () => slow.observePrefill(PROMPT, 50 * PROMPT_MS));
    const fresh = speed(pool);
    // No step of an engine that slow is so short: until that is known, the prompt says something of decoding.
    times(40, () => fresh.observePrefill(PROMPT, PROMPT_MS));
    expect(fresh.decodeScale).toBeLessThan(12);
    expect(fresh.prefillScale).toBeLessThan(12);
  });

  it.each([0, -5, Number.NaN])("ignores a stretch of %d ms", (observedMs) => {
    const engine = speed();
    engine.observeDecode(STRETCH, observedMs);
    engine.observePrefill(PROMPT, observedMs);
    expect(engine.samples).toBe(0);
  });

  it("is as fast as its capacity was configured until it was seen, and what was seen from then on", () => {
    const capacity = speed().tokensPerSecond;
    const engine = speed(new SpeedScales(), capacity / 5);
    expect(engine.decodeScale).toBeCloseTo(5, 9);
    expect(engine.prefillScale).toBeCloseTo(5, 9);
    times(64, () => engine.observeDecode(STRETCH, 2 * STRETCH_MS));
    expect(engine.decodeScale).toBeCloseTo(2, 0);
    expect(engine.tokensPerSecond).toBe(capacity / 5);
    engine.configure(undefined);
    expect(engine.tokensPerSecond).toBeCloseTo(capacity / engine.decodeScale, 6);
  });

  it("goes back to its pool's speed while only others are seen, and to its own when it is seen again", () => {
    const pool = new SpeedScales();
    pool.endpoints = 2;
    const [busy, idle] = [speed(pool), speed(pool)];
    times(100, () => idle.observeDecode(STRETCH, 8 * STRETCH_MS));
    times(500, () => busy.observeDecode(STRETCH, STRETCH_MS));
    expect(idle.decodeScale).toBeGreaterThan(6);
    times(6000, () => busy.observeDecode(STRETCH, STRETCH_MS));
    expect(idle.decodeScale).toBeLessThan(1.2);
    expect(busy.decodeScale).toBeCloseTo(1, 1);
    times(20, () => idle.observeDecode(STRETCH, 8 * STRETCH_MS));
    expect(idle.decodeScale).toBeGreaterThan(5);
  });
});
