import { describe, expect, it } from "vitest";
import { decodeStepMs, PRIOR_COEFFICIENTS, prefillMs } from "./engine-coefficients.ts";
import { type DecodeStretch, EngineSpeed } from "./engine-speed.ts";
import { SpeedPool } from "./speed-pool.ts";

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

function speed(pool: SpeedPool = new SpeedPool(), tokensPerSecond?: number): EngineSpeed {
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
    const pool = new SpeedPool();
    const slow = speed(pool);
    times(100, () => slow.observeDecode(STRETCH, 50 * STRETCH_MS));
    const fresh = speed(pool);
    expect(fresh.decodeScale).toBeCloseTo(50, 6);
    times(40, () => fresh.observeDecode(STRETCH, STRETCH_MS));
    expect(fresh.decodeScale).toBeLessThan(1.5);
    expect(slow.decodeScale).toBeGreaterThan(45);
  });

  it("takes a new endpoint to be between the endpoints of a mixed pool, whichever of them is busier", () => {
    const pool = new SpeedPool();
    const [fast, slow] = [speed(pool), speed(pool)];
    times(20, () => fast.observeDecode(STRETCH, STRETCH_MS));
    times(400, () => slow.observeDecode(STRETCH, 25 * STRETCH_MS));
    expect(speed(pool).decodeScale).toBeCloseTo(5, 6);
  });

  it("knows what a few samples show, however unlike the rest of the pool that is", () => {
    const pool = new SpeedPool();
    const [fast, slow] = [speed(pool), speed(pool)];
    times(400, () => slow.observeDecode(STRETCH, 20 * STRETCH_MS));
    times(8, () => fast.observeDecode(STRETCH, STRETCH_MS));
    expect(fast.decodeScale).toBeLessThan(1.5);
  });

  it("takes prefill, before it is seen, to be to its own decoding as in the pool", () => {
    const pool = new SpeedPool();
    const ownMs = prefillMs(PRIOR_COEFFICIENTS, 2000, 2e6);
    const seen = speed(pool);
    times(64, () => seen.observeDecode(STRETCH, STRETCH_MS));
    times(64, () => seen.observePrefill(PROMPT, 3 * ownMs + PROMPT_MS - ownMs));
    const [slow, configured] = [speed(pool), speed(pool, speed().tokensPerSecond / 20)];
    times(64, () => slow.observeDecode(STRETCH, 20 * STRETCH_MS));
    expect(slow.prefillScale / slow.decodeScale).toBeCloseTo(3, 1);
    expect(slow.prefillScale).toBeGreaterThan(50);
    expect(configured.prefillScale).toBeGreaterThan(50);
  });

  it("believes no prompt that was done faster than one step, once its own steps are known", () => {
    const engine = speed();
    times(64, () => engine.observeDecode(STRETCH, 10 * STRETCH_MS));
    const { samples, decodeScale, prefillScale } = engine;
    engine.observePrefill({ ...PROMPT, tokens: 5580 }, 5.1);
    expect([engine.samples, engine.decodeScale, engine.prefillScale]).toEqual([samples, decodeScale, prefillScale]);
  });

  it("believes no prefill that is more ahead of decoding than any hardware has it, but any that is behind", () => {
    const engine = speed();
    times(64, () => engine.observeDecode(STRETCH, 10 * STRETCH_MS));
    const { samples } = engine;
    engine.observePrefill({ ...PROMPT, tokens: 8000 }, 0.6 * STRETCH_MS);
    expect(engine.samples).toBe(samples);
    const stepMs = 10 * (decodeStepMs(PRIOR_COEFFICIENTS, 8, 8000) - PRIOR_COEFFICIENTS.weightsMs);
    times(8, () => engine.observePrefill(PROMPT, 360 * prefillMs(PRIOR_COEFFICIENTS, 2000, 2e6) + stepMs));
    expect(engine.prefillScale).toBeGreaterThan(150);
  });

  it("is forgotten by its pool when it leaves, and the last one's speed is believed of whoever comes next", () => {
    const pool = new SpeedPool();
    const [fast, slow] = [speed(pool), speed(pool)];
    times(20, () => fast.observeDecode(STRETCH, STRETCH_MS));
    times(20, () => slow.observeDecode(STRETCH, 25 * STRETCH_MS));
    fast.leave();
    expect(speed(pool).decodeScale).toBeCloseTo(25, 6);
    slow.leave();
    expect(slow.decodeScale).toBeCloseTo(25, 6);
    expect(speed(pool).decodeScale).toBeCloseTo(25, 6);
  });

  it("has coefficients at hand that are as of the last time when the pool was settled", () => {
    const pool = new SpeedPool();
    const [one, other] = [speed(pool), speed(pool)];
    const atHand = one.settledCoefficients;
    other.observeDecode(STRETCH, 3 * STRETCH_MS);
    expect(atHand.weightsMs).toBe(PRIOR_COEFFICIENTS.weightsMs);
    pool.settle();
    expect(atHand.weightsMs).toBeCloseTo(3 * PRIOR_COEFFICIENTS.weightsMs, 1);
  });

  it.each([
    ["an observation", (one: EngineSpeed) => one.observeDecode(STRETCH, 3 * STRETCH_MS)],
    ["a capacity that is configured", (one: EngineSpeed) => one.configure(100)],
  ])("is settled after %s of its own, whatever the pool makes of that", (_what, change) => {
    const pool = new SpeedPool();
    const engines = Array.from({ length: 16 }, () => speed(pool));
    for (let i = 0; i < 1600; i++) engines[i % 16]?.observeDecode(STRETCH, STRETCH_MS);
    const [one, other] = engines as [EngineSpeed, EngineSpeed];
    pool.settle();
    const before = [one, other].map(({ settledCoefficients }) => settledCoefficients.weightsMs);
    change(one);
    pool.settle();
    expect(other.settledCoefficients.weightsMs).toBe(before[1]);
    expect(one.settledCoefficients.weightsMs).toBeGreaterThan(before[0] as number);
    expect({ ...one.settledCoefficients }).toEqual(one.coefficients);
  });

  it("shows its newest coefficients to whoever asks for those", () => {
    const pool = new SpeedPool();
    const [one, other] = [speed(pool), speed(pool)];
    other.observeDecode(STRETCH, 3 * STRETCH_MS);
    expect(one.coefficients.weightsMs).toBeCloseTo(3 * PRIOR_COEFFICIENTS.weightsMs, 1);
  });

  it("prefers a configured capacity, until it is taken back", () => {
    const engine = speed(new SpeedPool(), 100);
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
    const pool = new SpeedPool();
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
    const engine = speed(new SpeedPool(), capacity / 5);
    expect(engine.decodeScale).toBeCloseTo(5, 9);
    expect(engine.prefillScale).toBeCloseTo(5, 9);
    times(64, () => engine.observeDecode(STRETCH, 2 * STRETCH_MS));
    expect(engine.decodeScale).toBeCloseTo(2, 0);
    expect(engine.tokensPerSecond).toBe(capacity / 5);
    engine.configure(undefined);
    expect(engine.tokensPerSecond).toBeCloseTo(capacity / engine.decodeScale, 6);
  });

  it("goes back to its pool's speed while only others are seen, and to its own when it is seen again", () => {
    const pool = new SpeedPool();
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

  describe("of a model whose parts cost other than in the prior's proportions", () => {
    /** As 70B on four H100 against the prior: weights, context and sequences. */
    const stepMs = (sequences: number, contextTokens: number): number => 17 + 30e-6 * contextTokens + 0.027 * sequences;
    const CONTEXTS = [2_000, 20_000, 60_000, 120_000, 200_000];
    const learn = (engine: EngineSpeed, contexts: readonly number[]): void => {
      for (let i = 0; i < 300; i++) {
        const contextTokens = contexts[i % contexts.length] as number;
        const sequences = 1 + contextTokens / 3000;
        engine.observeDecode({ ...STRETCH, sequences, contextTokens }, 10 * stepMs(sequences, contextTokens));
      }
    };

    it("learns the context apart from the rest of a step", () => {
      const engine = speed();
      learn(engine, CONTEXTS);
      for (const contextTokens of [1000, 100_000, 400_000]) {
        const ratio = engine.decodeStepMs(32, contextTokens) / stepMs(32, contextTokens);
        expect(Math.abs(Math.log(ratio))).toBeLessThan(0.1);
      }
      expect(Object.values(engine.coefficients).every((coefficient) => coefficient > 0)).toBe(true);
    });

    it("believes the same of an endpoint of the pool whose own load never showed it", () => {
      const pool = new SpeedPool();
      const [seen, even] = [speed(pool), speed(pool)];
      learn(seen, CONTEXTS);
      learn(even, [2_000]);
      expect(Math.abs(Math.log(even.decodeStepMs(1, 400_000) / stepMs(1, 400_000)))).toBeLessThan(0.15);
      expect(even.decodeStepMs(1, 2_000)).toBeCloseTo(stepMs(1, 2_000), 0);
    });

    it("learns attention apart from the rest of prefill", () => {
      const engine = speed();
      times(64, () => engine.observeDecode(STRETCH, STRETCH_MS));
      const besideMs = PROMPT_MS - prefillMs(PRIOR_COEFFICIENTS, 2000, 2e6);
      for (let i = 0; i < 300; i++) {
        const tokens = [1000, 3000, 8000][i % 3] as number;
        const pairs = tokens * ([500, 4000, 30_000][Math.floor(i / 3) % 3] as number);
        engine.observePrefill({ ...PROMPT, tokens, pairs }, 0.06 * tokens + 0.9e-6 * pairs + besideMs);
      }
      for (const [tokens, pairs] of [
        [2000, 2e6],
        [2000, 60e6],
        [8000, 240e6],
      ] as const) {
        const ratio = engine.prefillMs(tokens, pairs) / (0.06 * tokens + 0.9e-6 * pairs);
        expect(Math.abs(Math.log(ratio))).toBeLessThan(0.1);
      }
    });
  });

  it("believes a large pool's endpoints anew not with each observation but when each may have been seen", () => {
    const pool = new SpeedPool();
    const engines = Array.from({ length: 16 }, () => speed(pool));
    for (let i = 0; i < 1600; i++) engines[i % 16]?.observeDecode(STRETCH, 2 * STRETCH_MS);
    const [one, other] = engines as [EngineSpeed, EngineSpeed];
    const before = one.coefficients.weightsMs;
    other.observeDecode(STRETCH, 4 * STRETCH_MS);
    expect(one.coefficients.weightsMs).toBe(before);
    times(16, () => other.observeDecode(STRETCH, 4 * STRETCH_MS));
    expect(one.coefficients.weightsMs).not.toBe(before);
  });
});
