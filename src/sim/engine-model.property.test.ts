import fc from "fast-check";
import { expect, it } from "vitest";
import { EngineModel, type EngineRequest } from "./engine-model.ts";
import { type EngineProfile, engineProfile } from "./engine-profiles.ts";

interface Arrival {
  readonly gapMs: number;
  readonly conversation: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Time from arrival to a client that leaves; undefined: it stays. */
  readonly patienceMs: number | undefined;
}

const arrivals = fc.array(
  fc.record<Arrival>({
    gapMs: fc.double({ min: 0, max: 40, noNaN: true }),
    conversation: fc.integer({ min: 0, max: 3 }),
    promptTokens: fc.integer({ min: 1, max: 150 }),
    outputTokens: fc.integer({ min: 0, max: 60 }),
    patienceMs: fc.option(fc.double({ min: 0, max: 300, noNaN: true }), { nil: undefined }),
  }),
  { maxLength: 40 },
);

/** Small enough that chunking, queueing, eviction and preemption all happen. */
const limits = fc.record({
  kvTokens: fc.integer({ min: 210, max: 600 }),
  maxSequences: fc.integer({ min: 1, max: 8 }),
  maxBatchTokens: fc.integer({ min: 8, max: 200 }),
});

interface Fate {
  tokens: number;
  prefills: number;
  ends: number;
  isAborted: boolean;
}

it("ends every request exactly once with all its tokens, in order of time, and leaks no block", () => {
  const base = engineProfile("llama8b-h100") as EngineProfile;
  let preemptions = 0;
  let hits = 0;
  fc.assert(
    fc.property(arrivals, limits, (plan, { maxBatchTokens, ...rest }) => {
      const profile = { ...base, ...rest, coefficients: { ...base.coefficients, maxBatchTokens } };
      const fates = new Map<EngineRequest, Fate>();
      let lastMs = 0;
      const fateOf = (request: EngineRequest, atMs: number): Fate => {
        expect(atMs).toBeGreaterThanOrEqual(lastMs);
        lastMs = atMs;
        const fate = fates.get(request) as Fate;
        expect(fate).toMatchObject({ ends: 0, isAborted: false });
        return fate;
      };
      const model = new EngineModel(
        { profile },
        {
          prefilled(request, cachedTokens, atMs) {
            fateOf(request, atMs).prefills++;
            expect(cachedTokens).toBeLessThan(request.promptTokens);
            expect(cachedTokens % 16).toBe(0);
          },
          token(request, generatedTokens, atMs) {
            expect(generatedTokens).toBe(++fateOf(request, atMs).tokens);
          },
          finished(request, atMs) {
            fateOf(request, atMs).ends++;
          },
        },
      );

      let nowMs = 0;
      const leaving: { readonly request: EngineRequest; readonly atMs: number }[] = [];
      const abortUntil = (untilMs: number): void => {
        leaving.sort((a, b) => a.atMs - b.atMs);
        while (leaving[0] !== undefined && leaving[0].atMs <= untilMs) {
          const { request, atMs } = leaving.shift() as (typeof leaving)[number];
          if (model.abort(request, atMs)) (fates.get(request) as Fate).isAborted = true;
        }
      };
      for (const { gapMs, conversation, promptTokens, outputTokens, patienceMs } of plan) {
        nowMs += gapMs;
        abortUntil(nowMs);
        const blockHashes = Array.from({ length: 13 }, (_, depth) => conversation * 1000 + depth);
        const request = { promptTokens, outputTokens, blockHashes };
        fates.set(request, { tokens: 0, prefills: 0, ends: 0, isAborted: false });
        model.submit(request, nowMs);
        if (patienceMs !== undefined) leaving.push({ request, atMs: nowMs + patienceMs });
        expect(model.signals(nowMs).kvUsedRatio).toBeLessThanOrEqual(1);
      }
      abortUntil(Number.POSITIVE_INFINITY);
      for (let next = model.nextEventMs(); next !== undefined; next = model.nextEventMs()) model.advance(next);

      let tokens = 0;
      for (const [request, fate] of fates) {
        tokens += fate.tokens;
        if (!fate.isAborted) expect(fate).toMatchObject({ tokens: request.outputTokens, prefills: 1, ends: 1 });
      }
      const signals = model.signals(nowMs);
      expect(signals).toMatchObject({ runningRequests: 0, waitingRequests: 0, kvUsedRatio: 0 });
      expect(signals.generatedTokensTotal).toBe(tokens);
      expect(signals.prefixHitTokensTotal).toBeLessThanOrEqual(signals.prefixQueryTokensTotal ?? 0);
      preemptions += signals.preemptionsTotal ?? 0;
      hits += signals.prefixHitTokensTotal ?? 0;
    }),
    { seed: 7, numRuns: 200 },
  );
  // The law is worth something only if the hard cases were among the runs.
  expect(preemptions).toBeGreaterThan(0);
  expect(hits).toBeGreaterThan(0);
});
