import { describe, expect, it } from "vitest";
import { EngineModel, type EngineObserver } from "./engine-model.ts";
import { type EngineProfile, engineProfile } from "./engine-profiles.ts";
import type { EngineRequest } from "./sequence.ts";
import { stepMs } from "./step-time.ts";

const H100 = engineProfile("llama8b-h100") as EngineProfile;

function request(promptTokens: number, outputTokens: number, blockHashes: readonly number[] = []): EngineRequest {
  return { promptTokens, outputTokens, blockHashes };
}

/** A model without an eye for single tokens, and when each request had its prompt computed and its end. */
function coarse(profile: EngineProfile = H100): {
  readonly model: EngineModel;
  readonly prefilledAtMs: Map<EngineRequest, number>;
  readonly finishedAtMs: Map<EngineRequest, number>;
} {
  const prefilledAtMs = new Map<EngineRequest, number>();
  const finishedAtMs = new Map<EngineRequest, number>();
  const observer: EngineObserver<EngineRequest> = {
    prefilled: (one, _cachedTokens, atMs) => prefilledAtMs.set(one, atMs),
    finished: (one, atMs) => finishedAtMs.set(one, atMs),
  };
  return { model: new EngineModel({ profile }, observer), prefilledAtMs, finishedAtMs };
}

/** Advances from event to event until the engine is empty; returns how many there were. */
function drain(model: EngineModel): number {
  let events = 0;
  for (let next = model.nextEventMs(); next !== undefined; next = model.nextEventMs()) {
    model.advance(next);
    events++;
  }
  return events;
}

function progress(model: EngineModel, nowMs: number): number[] {
  const tokens: number[] = [];
  model.forEachRunning(nowMs, (_request, generatedTokens) => tokens.push(generatedTokens));
  return tokens;
}

/** Decode step of one sequence with `contextTokens`. */
function decodeMs(contextTokens: number): number {
  return stepMs(H100, { tokens: 1, pairs: 0, decodes: 1, contextTokens });
}

describe("EngineModel where nobody looks at single tokens", () => {
  it("has an event for the prompt and one for the end, however long the output", () => {
    const { model } = coarse();
    model.submit(request(100, 5000), 0);
    model.advance(0);
    expect(drain(model)).toBe(2);
  });

  it("tells at any time how many tokens each running request has", () => {
    const { model, prefilledAtMs } = coarse();
    const one = request(100, 5000);
    model.submit(one, 0);
    model.advance(100);
    const startMs = prefilledAtMs.get(one) as number;
    const thirdMs = startMs + decodeMs(101) + decodeMs(102);
    model.advance(thirdMs + 0.001);
    expect(progress(model, thirdMs - 0.001)).toEqual([2]);
    expect(progress(model, thirdMs + 0.001)).toEqual([3]);
    expect(model.signals(thirdMs + 0.001).generatedTokensTotal).toBe(3);
  });

  it("counts the blocks that running requests have come to by the time it is asked", () => {
    const { model } = coarse();
    model.submit(request(16, 5000), 0);
    model.advance(0);
    const before = model.signals(0).kvUsedRatio ?? 0;
    model.advance(1000);
    const [generatedTokens = 0] = progress(model, 1000);
    expect(model.signals(1000).kvUsedRatio).toBeCloseTo(before * (1 + Math.ceil(generatedTokens / 16)), 9);
  });

  it("serves a newcomer with the step after the one in progress", () => {
    const { model, prefilledAtMs } = coarse();
    const [long, newcomer] = [request(100, 5000), request(200, 1)];
    model.submit(long, 0);
    model.advance(100);
    const startMs = prefilledAtMs.get(long) as number;
    model.submit(newcomer, startMs + decodeMs(101) + 0.5 * decodeMs(102));
    drain(model);
    const mixed = stepMs(H100, { tokens: 201, pairs: 20_000, decodes: 1, contextTokens: 103 });
    expect(prefilledAtMs.get(newcomer)).toBeCloseTo(startMs + decodeMs(101) + decodeMs(102) + mixed, 6);
  });

  it("decodes on in one run while the first in line waits for room", () => {
    const { model } = coarse({ ...H100, maxSequences: 1 });
    model.submit(request(100, 5000), 0);
    model.submit(request(100, 1), 0);
    model.advance(100);
    const endMs = model.nextEventMs();
    model.submit(request(100, 1), 200);
    expect(model.nextEventMs()).toBe(endMs);
  });

  it("lets the first in line enter as soon as a running request has computed what it lacked", () => {
    const { model, prefilledAtMs, finishedAtMs } = coarse({ ...H100, kvTokens: 18 * 16 });
    // Both compute blocks 1 to 4, and the copies of `short` are the known ones; `holder` makes 5 to 8 known.
    const [short, holder] = [request(80, 1, [1, 2, 3, 4]), request(129, 100, [1, 2, 3, 4, 5, 6, 7, 8])];
    model.submit(short, 0);
    model.submit(holder, 0);
    model.advance(50);
    // Takes what was never used; the least recently released block is now the 4, and `healer` takes it.
    model.submit(request(80, 1), 50);
    model.advance(75);
    const healer = request(49, 40, [1, 2, 3, 4]);
    model.submit(healer, 75);
    model.advance(100);
    // Needs 9 blocks and finds 3, then 8: those of `holder` lie behind the 4.
    const waiting = request(129, 1, [1, 2, 3, 4, 5, 6, 7, 8]);
    model.submit(waiting, 100);
    model.advance(125);
    expect([model.runningRequests, model.waitingRequests]).toEqual([2, 1]);
    drain(model);
    expect(prefilledAtMs.get(waiting)).toBeLessThan(finishedAtMs.get(healer) as number);
  });

  it("frees the blocks of a request that leaves in the middle of a run", () => {
    const { model, finishedAtMs } = coarse();
    const [stays, leaves] = [request(100, 300), request(100, 300)];
    model.submit(stays, 0);
    model.submit(leaves, 0);
    model.advance(500);
    expect(model.abort(leaves, 500)).toBe(true);
    const [generatedTokens = 0] = progress(model, 500);
    expect(model.signals(500).kvUsedRatio).toBeCloseTo(Math.ceil((100 + generatedTokens) / 16) / model.totalBlocks, 9);
    drain(model);
    expect([...finishedAtMs.keys()]).toEqual([stays]);
  });

  it("keeps the pace of the step in progress when its speed changes", () => {
    const { model, prefilledAtMs, finishedAtMs } = coarse();
    const one = request(100, 3);
    model.submit(one, 0);
    model.advance(100 * decodeMs(0));
    const again = request(100, 3);
    model.submit(again, 1000);
    model.advance(1000);
    const startMs = model.nextEventMs() as number;
    model.advance(startMs);
    model.setSpeed(0.5, startMs + 1);
    drain(model);
    expect(prefilledAtMs.get(again)).toBe(startMs);
    expect(finishedAtMs.get(again)).toBeCloseTo(startMs + decodeMs(101) + 2 * decodeMs(102), 6);
  });
});

describe("EngineModel that crashes", () => {
  it("gives back all it had, in order of submission, and reports none of it", () => {
    const { model, prefilledAtMs, finishedAtMs } = coarse({ ...H100, maxSequences: 2 });
    const requests = [request(10, 50), request(10, 60), request(10, 70)];
    for (const one of requests) model.submit(one, 0);
    model.advance(100);
    expect(model.failAll(100)).toEqual(requests);
    expect(model.nextEventMs()).toBeUndefined();
    expect(model.signals(100)).toMatchObject({ runningRequests: 0, waitingRequests: 0, kvUsedRatio: 0 });
    expect(prefilledAtMs.size).toBe(2);
    expect(finishedAtMs.size).toBe(0);
  });

  it("comes back empty: what it had computed is not found again, and it keeps no step", () => {
    const { model, prefilledAtMs } = coarse();
    const chain = [1, 2, 3, 4];
    model.submit(request(64, 1, chain), 0);
    model.advance(50);
    model.submit(request(4000, 1), 50);
    model.advance(50);
    model.failAll(51);
    const after = request(64, 1, chain);
    model.submit(after, 52);
    drain(model);
    expect(prefilledAtMs.get(after)).toBeCloseTo(
      52 + stepMs(H100, { tokens: 64, pairs: 2048, decodes: 0, contextTokens: 0 }),
      6,
    );
    expect(model.signals(100).prefixHitTokensTotal).toBe(0);
  });

  it("says nothing more of those that were not finished at that moment", () => {
    const log: string[] = [];
    const [first, second, third] = [request(10, 1), request(10, 1), request(10, 5)];
    const model: EngineModel = new EngineModel(
      { profile: H100 },
      {
        prefilled: ({ outputTokens }) => log.push(`prefilled ${outputTokens}`),
        finished({ outputTokens }, atMs) {
          log.push(`finished ${outputTokens}`);
          if (log.length === 2) expect(model.failAll(atMs)).toEqual([third]);
        },
      },
    );
    for (const one of [first, second, third]) model.submit(one, 0);
    drain(model);
    expect(log).toEqual(["prefilled 1", "finished 1", "prefilled 1", "finished 1"]);
  });
});
