import { describe, expect, it } from "vitest";
import { EngineModel, type EngineRequest } from "./engine-model.ts";
import { type EngineProfile, engineProfile } from "./engine-profiles.ts";
import { type StepWork, stepMs } from "./step-time.ts";

interface NamedRequest extends EngineRequest {
  readonly name: string;
}

const H100 = engineProfile("llama8b-h100") as EngineProfile;

function request(
  name: string,
  promptTokens: number,
  outputTokens: number,
  blockHashes: readonly number[] = [],
): NamedRequest {
  return { name, promptTokens, outputTokens, blockHashes };
}

function chain(start: number, length: number): number[] {
  return Array.from({ length }, (_, depth) => start + depth);
}

/** A model whose events are written down as `name:what@ms`. */
function recorded(
  limits: Partial<EngineProfile> & { readonly maxBatchTokens?: number } = {},
  speed = 1,
): { readonly model: EngineModel<NamedRequest>; readonly log: string[]; readonly times: Map<string, number> } {
  const { maxBatchTokens = H100.coefficients.maxBatchTokens, ...rest } = limits;
  const profile = { ...H100, ...rest, coefficients: { ...H100.coefficients, maxBatchTokens } };
  const log: string[] = [];
  const times = new Map<string, number>();
  const note = (entry: string, atMs: number): void => {
    log.push(entry);
    times.set(entry, atMs);
  };
  const model = new EngineModel<NamedRequest>(
    { profile, speed },
    {
      prefilled: ({ name }, cachedTokens, atMs) => note(`${name} prefilled, ${cachedTokens} cached`, atMs),
      token: ({ name }, generatedTokens, atMs) => note(`${name} token ${generatedTokens}`, atMs),
      finished: ({ name }, atMs) => note(`${name} finished`, atMs),
    },
  );
  return { model, log, times };
}

function step(work: Partial<StepWork>): number {
  return stepMs(H100, { tokens: 0, pairs: 0, contextTokens: 0, decodes: 0, ...work });
}

/** Runs until the engine is empty. */
function drain(model: EngineModel<NamedRequest>): void {
  for (let next = model.nextEventMs(); next !== undefined; next = model.nextEventMs()) model.advance(next);
}

describe("EngineModel", () => {
  describe("time", () => {
    it("computes the prompt in one step and each further token in another", () => {
      const { model, log, times } = recorded();
      model.submit(request("a", 1000, 3), 50);
      drain(model);
      expect(log).toEqual(["a prefilled, 0 cached", "a token 1", "a token 2", "a token 3", "a finished"]);
      const first = 50 + step({ tokens: 1000, pairs: 500_000 });
      const second = first + step({ tokens: 1, decodes: 1, contextTokens: 1001 });
      expect(times.get("a token 1")).toBeCloseTo(first, 9);
      expect(times.get("a token 2")).toBeCloseTo(second, 9);
      expect(times.get("a finished")).toBeCloseTo(second + step({ tokens: 1, decodes: 1, contextTokens: 1002 }), 9);
      expect(model.nextEventMs()).toBeUndefined();
    });

    it("divides by the speed", () => {
      const [slow, fast] = [recorded({}, 0.5), recorded({}, 1)];
      for (const { model } of [slow, fast]) {
        model.submit(request("a", 100, 5), 0);
        drain(model);
      }
      expect(slow.times.get("a finished")).toBeCloseTo(2 * (fast.times.get("a finished") ?? 0), 9);
    });

    it("gives the same times to a caller that asks late as to one that asks in time", () => {
      const [prompt, late] = [recorded(), recorded()];
      prompt.model.submit(request("a", 300, 40), 0);
      drain(prompt.model);
      late.model.submit(request("a", 300, 40), 0);
      late.model.advance(1e6);
      expect([...late.times]).toEqual([...prompt.times]);
    });

    it("does nothing before the end of a step", () => {
      const { model, log } = recorded();
      model.submit(request("a", 10, 1), 0);
      model.advance(0);
      const endMs = model.nextEventMs() ?? 0;
      model.advance(endMs - 0.001);
      expect(log).toEqual([]);
      model.advance(endMs);
      expect(log).toContain("a finished");
    });

    it("lets requests of the same moment share a step, and later ones wait for its end", () => {
      const { model, times } = recorded();
      model.submit(request("a", 100, 1), 0);
      model.submit(request("b", 100, 1), 0);
      model.submit(request("late", 100, 1), 1);
      drain(model);
      const together = step({ tokens: 200, pairs: 10_000 });
      expect(times.get("a finished")).toBeCloseTo(together, 9);
      expect(times.get("b finished")).toBeCloseTo(together, 9);
      expect(times.get("late finished")).toBeCloseTo(together + step({ tokens: 100, pairs: 5000 }), 9);
    });

    it("starts afresh at the next arrival after it was idle", () => {
      const { model, times } = recorded();
      model.submit(request("a", 100, 1), 0);
      drain(model);
      model.submit(request("b", 100, 1), 5000);
      expect(model.nextEventMs()).toBe(5000);
      drain(model);
      expect(times.get("b finished")).toBeCloseTo(5000 + step({ tokens: 100, pairs: 5000 }), 9);
    });
  });

  describe("batching", () => {
    it("decodes the running and prefills the arriving in one step", () => {
      const { model, times } = recorded();
      model.submit(request("a", 100, 10), 0);
      model.advance(0);
      model.submit(request("b", 200, 1), 1);
      drain(model);
      const first = step({ tokens: 100, pairs: 5000 });
      const mixed = step({ tokens: 201, pairs: 20_000, decodes: 1, contextTokens: 101 });
      expect(times.get("a token 2")).toBeCloseTo(first + mixed, 9);
      expect(times.get("b finished")).toBeCloseTo(first + mixed, 9);
    });

    it("splits a prompt that exceeds the batch, behind the decodes", () => {
      const { model, log, times } = recorded({ maxBatchTokens: 256 });
      model.submit(request("a", 100, 10), 0);
      model.advance(0);
      model.submit(request("long", 600, 1), 1);
      drain(model);
      // Each step decodes one token of "a", so 255 are left: 255 + 255 + 90.
      expect(log.slice(0, 6)).toEqual([
        "a prefilled, 0 cached",
        "a token 1",
        "a token 2",
        "a token 3",
        "a token 4",
        "long prefilled, 0 cached",
      ]);
      let expected = step({ tokens: 100, pairs: 5000 });
      expected += step({ tokens: 256, pairs: 255 * 127.5, decodes: 1, contextTokens: 101 });
      expected += step({ tokens: 256, pairs: 255 * (255 + 127.5), decodes: 1, contextTokens: 102 });
      expected += step({ tokens: 91, pairs: 90 * (510 + 45), decodes: 1, contextTokens: 103 });
      expect(times.get("long finished")).toBeCloseTo(expected, 9);
    });

    it("admits in order of arrival even where a later one would fit", () => {
      const { model, log } = recorded({ kvTokens: 160 });
      model.submit(request("a", 100, 5), 0);
      model.submit(request("big", 100, 1), 0);
      model.submit(request("small", 10, 1), 0);
      model.advance(0);
      expect([model.runningRequests, model.waitingRequests]).toEqual([1, 2]);
      drain(model);
      expect(log.filter((entry) => entry.endsWith("finished"))).toEqual([
        "a finished",
        "big finished",
        "small finished",
      ]);
    });

    it("runs no more sequences than allowed", () => {
      const { model } = recorded({ maxSequences: 2 });
      for (const name of ["a", "b", "c"]) model.submit(request(name, 10, 3), 0);
      model.advance(0);
      expect(model.signals(0)).toMatchObject({ runningRequests: 2, waitingRequests: 1 });
      drain(model);
      expect(model.signals(0)).toMatchObject({ runningRequests: 0, waitingRequests: 0, generatedTokensTotal: 9 });
    });

    it("ends a request without output when its prompt is computed", () => {
      const { model, log } = recorded();
      model.submit(request("embedding", 100, 0), 0);
      drain(model);
      expect(log).toEqual(["embedding prefilled, 0 cached", "embedding finished"]);
      expect(model.signals(0)).toMatchObject({ promptTokensTotal: 100, generatedTokensTotal: 0, kvUsedRatio: 0 });
    });
  });

  describe("prefix cache", () => {
    it("finds full blocks of an earlier prompt and computes the rest", () => {
      const { model, log, times } = recorded();
      model.submit(request("a", 100, 1, chain(1, 6)), 0);
      drain(model);
      model.submit(request("b", 100, 1, [...chain(1, 4), 77, 78]), 1000);
      drain(model);
      expect(log).toContain("b prefilled, 64 cached");
      expect(times.get("b finished")).toBeCloseTo(1000 + step({ tokens: 36, pairs: 36 * (64 + 18) }), 9);
      expect(model.signals(0)).toMatchObject({ prefixHitTokensTotal: 64, prefixQueryTokensTotal: 200 });
    });

    it("always computes the last token", () => {
      const { model, log } = recorded();
      for (const name of ["a", "b"]) {
        model.submit(request(name, 64, 1, chain(1, 4)), 0);
        drain(model);
      }
      expect(log).toContain("b prefilled, 48 cached");
    });

    it("keeps the output for the next turn, but for its last token", () => {
      const { model, log } = recorded();
      model.submit(request("turn 1", 20, 29, chain(1, 3)), 0);
      drain(model);
      // 20 + 29 tokens are 48 computed ones and a last one that was never fed back: three full blocks.
      model.submit(request("turn 2", 100, 1, [...chain(1, 3), 50, 51, 52]), 1000);
      drain(model);
      expect(log).toContain("turn 2 prefilled, 48 cached");
    });

    it("offers blocks only once they are computed", () => {
      const { model, log } = recorded();
      model.submit(request("a", 64, 1, chain(1, 4)), 0);
      model.submit(request("b", 65, 1, chain(1, 4)), 0);
      model.submit(request("c", 65, 1, chain(1, 4)), 1);
      drain(model);
      expect(log).toContain("b prefilled, 0 cached");
      expect(log).toContain("c prefilled, 64 cached");
    });
  });

  describe("preemption", () => {
    /** 8 blocks. Two sequences of 3 blocks each grow until the younger is in the way. */
    function crowded(): ReturnType<typeof recorded> {
      const engine = recorded({ kvTokens: 128 });
      engine.model.submit(request("old", 48, 40, chain(1, 5)), 0);
      engine.model.submit(request("young", 48, 40, chain(101, 5)), 0);
      return engine;
    }

    it("recomputes the youngest at the front of the queue and loses no token", () => {
      const { model, log } = crowded();
      model.submit(request("next", 100, 1), 1);
      drain(model);
      const finished = log.filter((entry) => entry.endsWith("finished"));
      expect(finished).toEqual(["old finished", "young finished", "next finished"]);
      for (const name of ["old", "young"]) {
        const tokens = log.filter((entry) => entry.startsWith(`${name} token`));
        expect(tokens).toEqual(Array.from({ length: 40 }, (_, i) => `${name} token ${i + 1}`));
      }
      expect(model.signals(0)).toMatchObject({ preemptionsTotal: 1, generatedTokensTotal: 81, kvUsedRatio: 0 });
    });

    it("admits nobody in a step that preempts", () => {
      const { model } = crowded();
      // Ten tokens fit the one block that preemption leaves over, were it offered.
      while (model.signals(0).preemptionsTotal === 0) {
        if (model.runningRequests === 2 && model.waitingRequests === 0) model.submit(request("tiny", 10, 1), 0);
        model.advance(model.nextEventMs() ?? 0);
      }
      expect([model.runningRequests, model.waitingRequests]).toEqual([1, 2]);
    });

    it("finds its own prefix again where it was not evicted", () => {
      // 9 blocks: when both need a fifth, one is left; the young give up 4 and the old take one of them.
      const { model, times, log } = recorded({ kvTokens: 144 });
      model.submit(request("old", 64, 17, chain(1, 4)), 0);
      model.submit(request("young", 64, 17, chain(101, 5)), 0);
      drain(model);
      expect(model.signals(0).preemptionsTotal).toBe(1);
      expect(log).toContain("young token 17");
      // Usage reports the first admission; the recomputation does not count as a query.
      expect(model.signals(0)).toMatchObject({ prefixQueryTokensTotal: 128, prefixHitTokensTotal: 0 });
      const cold = step({ tokens: 65, pairs: 65 * 32.5 });
      const resumedMs = (times.get("young token 2") ?? 0) - (times.get("old finished") ?? 0);
      expect(resumedMs).toBeLessThan(cold);
    });
  });

  describe("abort", () => {
    it("frees blocks and place of a running request, and no event follows", () => {
      const { model, log } = recorded({ maxSequences: 1 });
      const gone = request("gone", 100, 1000);
      model.submit(gone, 0);
      model.submit(request("b", 100, 1), 0);
      model.advance(0);
      expect(model.signals(0).kvUsedRatio).toBeGreaterThan(0);
      expect(model.abort(gone, 1)).toBe(true);
      expect(model.signals(0)).toMatchObject({ kvUsedRatio: 0, runningRequests: 0, waitingRequests: 1 });
      drain(model);
      expect(log.filter((entry) => entry.startsWith("gone"))).toEqual([]);
      expect(log).toContain("b finished");
    });

    it("takes a waiting request out of the queue", () => {
      const { model, log } = recorded({ maxSequences: 1 });
      const gone = request("gone", 100, 1);
      model.submit(request("a", 100, 1), 0);
      model.submit(gone, 0);
      model.submit(request("b", 100, 1), 0);
      model.advance(0);
      model.abort(gone, 1);
      expect(model.waitingRequests).toBe(1);
      drain(model);
      expect(log.filter((entry) => entry.endsWith("finished"))).toEqual(["a finished", "b finished"]);
    });

    it("says so when the request is not there", () => {
      const { model } = recorded();
      const done = request("done", 10, 1);
      model.submit(done, 0);
      drain(model);
      expect(model.abort(done, 1000)).toBe(false);
      expect(model.abort(request("stranger", 10, 1), 1000)).toBe(false);
    });

    it("lets the same request be submitted again", () => {
      const { model, log } = recorded();
      const again = request("again", 10, 1);
      model.submit(again, 0);
      expect(() => model.submit(again, 0)).toThrow("already");
      model.abort(again, 0);
      model.submit(again, 1);
      drain(model);
      expect(log.filter((entry) => entry === "again finished")).toHaveLength(1);
    });
  });

  it("lets its observer submit and abort while it reports", () => {
    const finished: string[] = [];
    const requests = [request("a", 10, 1), request("b", 10, 2), request("follow-up", 10, 1)] as const;
    const [a, b, followUp] = requests;
    const model: EngineModel<NamedRequest> = new EngineModel<NamedRequest>(
      { profile: H100 },
      {
        finished({ name }, atMs) {
          finished.push(name);
          if (name !== "a") return;
          model.submit(followUp, atMs);
          model.abort(b, atMs);
        },
      },
    );
    model.submit(a, 0);
    model.submit(b, 0);
    drain(model);
    expect(finished).toEqual(["a", "follow-up"]);
  });

  it("refuses what could never end", () => {
    const { model } = recorded({ kvTokens: 167 });
    expect([model.totalBlocks, model.capacityTokens]).toEqual([10, 160]);
    expect(() => model.submit(request("huge", 100, 61), 0)).toThrow("160 tokens");
    expect(() => model.submit(request("empty", 0, 1), 0)).toThrow("at least one");
    expect(model.nextEventMs()).toBeUndefined();
  });
});
