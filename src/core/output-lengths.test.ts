import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MIN_REMAINING_TOKENS } from "./output-expectation.ts";
import { type OutputKey, OutputLengths } from "./output-lengths.ts";
import { seededRandom } from "./random.ts";

const KEY: OutputKey = { model: "m", route: "chat", maxOutputTokens: undefined };

function learned(lengths: readonly number[], key: OutputKey = KEY): OutputLengths {
  const outputs = new OutputLengths();
  for (const length of lengths) outputs.observe(key, length);
  return outputs;
}

const repeat = (length: number, times: number): number[] => new Array<number>(times).fill(length);

/** The mixture of the doc comment from the lengths themselves, faded one by one. */
function residualByHand(own: readonly number[], model: readonly number[], tokens: number): number {
  const tail = (lengths: readonly number[], parent: { beyond: number; excess: number }) => {
    let [weight, beyond, excess] = [20, 20 * parent.beyond, 20 * parent.excess];
    for (const [i, length] of lengths.entries()) {
      const faded = 2 ** (-(lengths.length - i) / 1000);
      weight += faded;
      if (length > tokens) {
        beyond += faded;
        excess += faded * (length - tokens);
      }
    }
    return { beyond: beyond / weight, excess: excess / weight };
  };
  const chance = Math.exp(-tokens / 256);
  const { beyond, excess } = tail(own, tail(model, { beyond: chance, excess: 256 * chance }));
  return excess / beyond;
}

describe("OutputLengths", () => {
  it("expects 256 tokens of a model nothing was seen of, and 256 more at every point", () => {
    const output = new OutputLengths().expect(KEY);
    expect(output.meanTokens).toBe(256);
    for (const tokens of [0, 100, 1000, 1_000_000]) expect(output.remainingAfter(tokens)).toBe(256);
  });

  it("comes within a tenth of what it sees in some two hundred completions", () => {
    expect(learned(repeat(1000, 200)).expect(KEY).meanTokens).toBeGreaterThan(900);
    expect(learned(repeat(20, 200)).expect(KEY).meanTokens).toBeLessThan(50);
  });

  it("falls with every token of an output of known length, and never below the floor", () => {
    const { remainingAfter } = learned(repeat(300, 3000)).expect(KEY);
    let before = remainingAfter(0);
    expect(Math.abs(before - 300)).toBeLessThan(10);
    for (let tokens = 1; tokens < 280; tokens++) {
      const now = remainingAfter(tokens);
      expect(now).toBeLessThanOrEqual(before);
      expect(now).toBeGreaterThanOrEqual(MIN_REMAINING_TOKENS);
      before = now;
    }
    expect(before).toBeLessThan(40);
  });

  it("expects more of a request that outlived every length seen, never nothing", () => {
    const { remainingAfter } = learned(repeat(500, 3000)).expect(KEY);
    expect(remainingAfter(20_000)).toBe(256);
  });

  it("stands at the mean of an exponential throughout", () => {
    const random = seededRandom(9);
    const lengths = Array.from({ length: 10_000 }, () => Math.ceil(-600 * Math.log(1 - random.next())));
    const { remainingAfter } = learned(lengths).expect(KEY);
    // Prior and model pull to 256 and 600; 195 of 1,443 completions are left beyond two means: a fifth either way.
    for (const tokens of [0, 300, 600, 1200]) {
      expect(Math.abs(Math.log(remainingAfter(tokens) / 600))).toBeLessThan(0.25);
    }
  });

  it("is the mean residual life of the mixture of key, model and prior", () => {
    const lengths = fc.array(fc.integer({ min: 1, max: 3000 }), { maxLength: 60 });
    fc.assert(
      fc.property(lengths, lengths, fc.nat(2000), (own, others, tokens) => {
        const outputs = learned(own);
        for (const length of others) outputs.observe({ ...KEY, route: "completions" }, length);
        const expected = residualByHand(own, [...own, ...others], tokens);
        // Exact but for the one bin that `tokens` stands in, 19 % wide, and for rounding.
        const blur = 0.19 * (tokens + 1) + 1;
        const found = outputs.expect(KEY).remainingAfter(tokens);
        expect(Math.abs(found - Math.max(MIN_REMAINING_TOKENS, expected))).toBeLessThanOrEqual(
          blur + binShare([...own, ...others], tokens) * expected,
        );
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    [10_000, 16],
    [50, 50],
    [1, 1],
  ])("of outputs of %d never expects more than a bound of %d, which may undercut the floor", (length, bound) => {
    const key = { ...KEY, maxOutputTokens: bound };
    const output = learned(repeat(length, 500), key).expect(key);
    expect(output.meanTokens).toBeLessThanOrEqual(bound);
    for (const tokens of [0, 1, bound - 1, bound, bound + 100]) {
      expect(output.remainingAfter(tokens)).toBeLessThanOrEqual(Math.max(1, bound - tokens));
      expect(output.remainingAfter(tokens)).toBeGreaterThanOrEqual(1);
    }
  });

  it.each([0, -1, 0.5])("expects nothing under a bound of %d", (bound) => {
    expect(new OutputLengths().expect({ ...KEY, maxOutputTokens: bound }).meanTokens).toBe(0);
  });

  it("learns a key of its own faster than its model", () => {
    const outputs = learned(repeat(1000, 500));
    const short = { ...KEY, route: "completions" };
    expect(outputs.expect(short).meanTokens).toBeGreaterThan(900);
    for (let i = 0; i < 100; i++) outputs.observe(short, 10);
    expect(outputs.expect(short).meanTokens).toBeLessThan(250);
    expect(outputs.expect(KEY).meanTokens).toBeGreaterThan(800);
  });

  it("learns bounds of one octave together, of different octaves and models apart", () => {
    const outputs = learned(repeat(90, 1000), { ...KEY, maxOutputTokens: 100 });
    const meanOf = (key: Partial<OutputKey>): number => outputs.expect({ ...KEY, ...key }).meanTokens;
    expect(meanOf({ maxOutputTokens: 120 })).toBe(meanOf({ maxOutputTokens: 100 }));
    expect(meanOf({ maxOutputTokens: 4000 })).toBeLessThan(110);
    expect(meanOf({ model: "other", maxOutputTokens: 4000 })).toBe(256);
  });

  it("follows what is learned while a request runs, from the first completion on", () => {
    const outputs = new OutputLengths();
    const running = outputs.expect(KEY);
    for (let i = 0; i < 500; i++) outputs.observe(KEY, 2000);
    expect(running.remainingAfter(0)).toBeGreaterThan(1800);
  });

  it("ignores a count that is none", () => {
    const outputs = learned([Number.NaN, -5]);
    expect(outputs.expect(KEY).meanTokens).toBe(256);
  });

  it("does not grow with the names clients make up", () => {
    const outputs = new OutputLengths();
    for (let i = 0; i < 2048; i++) outputs.observe({ ...KEY, model: `model-${i}` }, 2000);
    for (let i = 0; i < 500; i++) outputs.observe({ ...KEY, model: "one too many" }, 2000);
    expect(outputs.expect({ ...KEY, model: "one too many" }).meanTokens).toBe(256);
    for (let i = 0; i < 500; i++) outputs.observe({ ...KEY, model: "model-0" }, 2000);
    expect(outputs.expect({ ...KEY, model: "model-0" }).meanTokens).toBeGreaterThan(1900);
  });
});

/** Share of the weight beyond `tokens` that the bin of `tokens` may hold, so that it is misjudged at most by that. */
function binShare(lengths: readonly number[], tokens: number): number {
  const inBin = lengths.filter((length) => Math.abs(Math.log2((length + 1) / (tokens + 1))) <= 0.25).length;
  const beyond = lengths.filter((length) => length > tokens).length;
  return inBin / (beyond + 20 * Math.exp(-tokens / 256) * 0.5);
}
