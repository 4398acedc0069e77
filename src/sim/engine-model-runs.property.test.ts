import fc from "fast-check";
import { expect, it } from "vitest";
import { StepwiseEngine } from "../../test/support/stepwise-engine.ts";
import { EngineModel, type EngineObserver } from "./engine-model.ts";
import { type EngineProfile, engineProfile } from "./engine-profiles.ts";
import type { EngineRequest } from "./sequence.ts";

const H100 = engineProfile("llama8b-h100") as EngineProfile;

interface NumberedRequest extends EngineRequest {
  readonly id: number;
}

interface Event {
  readonly what: string;
  readonly atMs: number;
}

/** What is done to an engine from outside: at most one kind of it at a time, and then everyone looks at it. */
interface Action {
  readonly gapMs: number;
  readonly kind: "submit" | "abort" | "fail" | "speed" | "look";
  readonly conversation: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly hashedBlocks: number;
  /** Which of the requests so far, or how fast; 0 to 1. */
  readonly pick: number;
}

const actions = fc.array(
  fc.record<Action>({
    gapMs: fc.oneof(
      { weight: 4, arbitrary: fc.double({ min: 0, max: 30, noNaN: true }) },
      { weight: 1, arbitrary: fc.double({ min: 0, max: 1200, noNaN: true }) },
    ),
    kind: fc.oneof(
      { weight: 14, arbitrary: fc.constant("submit" as const) },
      { weight: 3, arbitrary: fc.constant("abort" as const) },
      { weight: 3, arbitrary: fc.constant("look" as const) },
      { weight: 1, arbitrary: fc.constantFrom("fail" as const, "speed" as const) },
    ),
    conversation: fc.integer({ min: 0, max: 2 }),
    promptTokens: fc.integer({ min: 1, max: 120 }),
    outputTokens: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 160 })),
    hashedBlocks: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 70 })),
    pick: fc.double({ min: 0, max: 0.999, noNaN: true }),
  }),
  { minLength: 1, maxLength: 60, size: "max" },
);

/** Small enough that chunking, queueing, eviction and preemption all happen. */
const engines = fc.record({
  kvTokens: fc.integer({ min: 320, max: 900 }),
  maxSequences: fc.integer({ min: 1, max: 10 }),
  maxBatchTokens: fc.integer({ min: 8, max: 200 }),
  blockTokens: fc.constantFrom(4, 16, 64),
  isTokenwise: fc.boolean(),
  isAskedInTime: fc.boolean(),
});

function recorder(isTokenwise: boolean): {
  readonly events: Event[];
  readonly observer: EngineObserver<NumberedRequest>;
} {
  const events: Event[] = [];
  const observer: EngineObserver<NumberedRequest> = {
    prefilled: ({ id }, cachedTokens, atMs) => events.push({ what: `${id} prefilled, ${cachedTokens} cached`, atMs }),
    finished: ({ id }, atMs) => events.push({ what: `${id} finished`, atMs }),
  };
  const token: EngineObserver<NumberedRequest>["token"] = ({ id }, generatedTokens, atMs) =>
    events.push({ what: `${id} token ${generatedTokens}`, atMs });
  return { events, observer: isTokenwise ? { ...observer, token } : observer };
}

it("does in runs of steps what it would do step by step", () => {
  let events = 0;
  let preemptions = 0;
  let hits = 0;
  fc.assert(
    fc.property(actions, engines, (plan, { blockTokens, isTokenwise, isAskedInTime, maxBatchTokens, ...limits }) => {
      const profile = { ...H100, ...limits, coefficients: { ...H100.coefficients, maxBatchTokens } };
      const [inRuns, stepwise] = [recorder(isTokenwise), recorder(isTokenwise)];
      const model = new EngineModel({ profile, blockTokens }, inRuns.observer);
      const plain = new StepwiseEngine(profile, blockTokens, stepwise.observer);
      const requests: NumberedRequest[] = [];
      let nowMs = 0;

      const act = ({ kind, pick, conversation, promptTokens, outputTokens, hashedBlocks }: Action): void => {
        const chosen = requests[Math.floor(pick * requests.length)];
        if (kind === "submit") {
          const blockHashes = Array.from({ length: hashedBlocks }, (_, depth) => conversation * 1000 + depth);
          const request = { id: requests.length, promptTokens, outputTokens, blockHashes };
          requests.push(request);
          model.submit(request, nowMs);
          plain.submit(request, nowMs);
        } else if (kind === "abort" && chosen !== undefined) {
          expect(model.abort(chosen, nowMs)).toBe(plain.abort(chosen));
        } else if (kind === "fail") {
          expect(model.failAll(nowMs)).toHaveLength(plain.failAll());
        } else if (kind === "speed") {
          model.setSpeed(0.1 + pick, nowMs);
          plain.speed = 0.1 + pick;
        }
      };
      const look = (): void => {
        const generated = new Map<NumberedRequest, number>();
        model.forEachRunning(nowMs, (request, tokens) => generated.set(request, tokens));
        expect([...generated]).toEqual([...plain.generatedTokens()]);
        expect(model.signals(nowMs)).toMatchObject({ preemptionsTotal: plain.preemptions });
        expect(model.signals(nowMs).kvUsedRatio).toBeCloseTo(plain.usedBlocks / model.totalBlocks, 9);
      };

      for (const action of plan) {
        nowMs += action.gapMs;
        while (plain.nextEventMs < nowMs) plain.next();
        if (isAskedInTime) advanceBefore(model, nowMs);
        act(action);
        while (plain.nextEventMs <= nowMs) plain.next();
        model.advance(nowMs);
        look();
      }
      while (plain.nextEventMs < Number.POSITIVE_INFINITY) plain.next();
      advanceBefore(model, Number.POSITIVE_INFINITY);

      expect(inRuns.events.map(({ what }) => what)).toEqual(stepwise.events.map(({ what }) => what));
      inRuns.events.forEach(({ atMs }, i) => {
        expect(Math.abs(atMs - (stepwise.events[i] as Event).atMs)).toBeLessThan(1e-6);
      });
      events += inRuns.events.length;
      preemptions += plain.preemptions;
      hits += model.signals(nowMs).prefixHitTokensTotal ?? 0;
    }),
    { seed: 11, numRuns: 400 },
  );
  // The law is worth something only if the hard cases were among the runs.

  expect(Math.min(events, preemptions, hits)).toBeGreaterThan(100);
});

/** Goes through everything that happens before `nowMs`, at its time. */
function advanceBefore(model: EngineModel<NumberedRequest>, nowMs: number): void {
  for (let next = model.nextEventMs(); next !== undefined && next < nowMs; next = model.nextEventMs()) {
    model.advance(next);
  }
}
