import { describe, expect, it } from "vitest";
import { DecodeBatch } from "./decode-batch.ts";
import { type EngineRequest, Sequence } from "./sequence.ts";

const BLOCK_TOKENS = 16;

let admissions = 0;

/** A sequence whose prompt is computed and which has its first token. */
function decoding(promptTokens: number, outputTokens: number): Sequence {
  const sequence = new Sequence<EngineRequest>({ promptTokens, outputTokens, blockHashes: [] });
  sequence.admission = admissions++;
  sequence.computedTokens = promptTokens;
  sequence.generatedTokens = 1;
  return sequence;
}

function batchOf(...sequences: readonly Sequence[]): DecodeBatch<EngineRequest> {
  const batch = new DecodeBatch<EngineRequest>(BLOCK_TOKENS);
  for (const sequence of sequences) batch.add(sequence);
  return batch;
}

describe("DecodeBatch", () => {
  it("gives each member a token per step, counted from when it came", () => {
    const [first, second] = [decoding(10, 100), decoding(20, 100)];
    const batch = batchOf(first);
    batch.step();
    batch.add(second);
    batch.step();
    expect([first, second].map((one) => batch.generatedTokens(one))).toEqual([3, 2]);
    expect([batch.size, batch.contextTokens]).toEqual([2, 10 + 3 + 20 + 2]);
  });

  it("brings the counts of who leaves up to date", () => {
    const [stays, leaves] = [decoding(10, 100), decoding(20, 100)];
    const batch = batchOf(stays, leaves);
    batch.step();
    batch.remove(leaves);
    batch.step();
    expect(leaves).toMatchObject({ generatedTokens: 2, computedTokens: 21, decodeOrigin: undefined });
    expect([batch.size, batch.contextTokens]).toEqual([1, 10 + 3]);
  });

  it("has those at the edge whose computed tokens fill their blocks", () => {
    const [full, twoShort] = [decoding(16, 100), decoding(30, 100)];
    const batch = batchOf(full, twoShort);
    expect(batch.atEdge).toEqual([full]);
    batch.step();
    expect(batch.atEdge).toEqual([]);
    batch.step();
    expect(batch.atEdge).toEqual([twoShort]);
    for (let step = 2; step < BLOCK_TOKENS; step++) batch.step();
    expect(batch.atEdge).toEqual([full]);
  });

  it("comes to the next edge in as many steps as it says, and to no other on the way", () => {
    const batch = batchOf(decoding(12, 100), decoding(30, 100));
    expect([batch.stepsToEdge(1), batch.stepsToEdge(100)]).toEqual([1, 2]);
    batch.step(2);
    expect(batch.contextTokens).toBe(13 + 31 + 2 * 2);
    expect(batch.atEdge).toHaveLength(1);
    expect(batch.stepsToEdge(100)).toBe(2);
  });

  it("lets the finished go, in order of admission, and nobody else", () => {
    const sequences = [decoding(10, 3), decoding(10, 4), decoding(10, 3)];
    const batch = batchOf(...sequences);
    batch.step();
    expect(batch.takeFinished()).toBeUndefined();
    batch.step();
    expect([batch.takeFinished(), batch.takeFinished(), batch.takeFinished()]).toEqual([
      sequences[0],
      sequences[2],
      undefined,
    ]);
  });

  it.each([
    [10, 39, "all blocks are there"],
    [3, 39, "just enough are"],
    [2, 34, "the third is missing, for the step after"],
    [0, 2, "none is"],
  ])("takes, with %s blocks, %s steps: %s", (freeBlocks, steps) => {
    // 30 tokens are computed: a block fills with the second step, the 18th and the 34th.
    const batch = batchOf(decoding(30, 40));
    expect(batch.stepsWithin(freeBlocks)).toBe(steps);
  });
});
