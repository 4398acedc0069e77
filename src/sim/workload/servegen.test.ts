import { describe, expect, it } from "vitest";
import { readServeGen } from "./servegen.ts";

const lengths = (input: number, output: number) => ({
  input_tokens: `{${input}: 1.0}`,
  output_tokens: `{${output}: 1.0}`,
});
const client = (id: number, trace: string[], dataset: object = { "0": lengths(100, 10) }) =>
  JSON.stringify({ client: id, trace, dataset });
/** A window as published: the scale measures gaps within bursts, half of 1/rate here. */
const gamma = (startS: number, rate: number, shape = 1) => `${startS},${rate},1,Gamma,${shape},${0.5 / rate / shape}\r`;
const silent = (startS: number) => `${startS},0,0,,0,0\r`;

describe("readServeGen", () => {
  it.each([
    ["gamma", "0,10,3,Gamma,0.111,0.3"],
    ["Weibull", "0,10,2,Weibull,0.6,0.02"],
  ])("sends at the published rate with %s gaps, whatever their scale", (_, row) => {
    const text = client(0, [row, silent(600)]);
    const counts = Array.from(
      { length: 50 },
      (_, seed) => readServeGen(text, { name: "s", durationS: 600, seed }).arrivals.length,
    );
    const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length;
    // 6,000 a window with a deviation of about 3 sqrt(6,000): five standard errors of 50 windows are 2.8 %.
    expect(Math.abs(mean / 6000 - 1)).toBeLessThan(0.028);
  });

  it("sends in the wanted time only, counted from its start, windows each at their own rate", () => {
    const text = client(0, [gamma(0, 2), silent(600), gamma(1200, 20)]);
    const { arrivals } = readServeGen(text, { name: "s", startS: 300, durationS: 1000 });
    const times = arrivals.map(({ atMs }) => atMs);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    // 600 and 2,000 expected; Poisson: five standard deviations.
    expect(Math.abs(times.filter((atMs) => atMs < 300_000).length - 600)).toBeLessThan(122);
    expect(times.filter((atMs) => atMs >= 300_000 && atMs < 900_000)).toEqual([]);
    expect(Math.abs(times.filter((atMs) => atMs >= 900_000).length - 2000)).toBeLessThan(224);
    expect(times.at(-1)).toBeLessThan(1_000_000);
  });

  it("takes lengths from the entry in force", () => {
    const windows = Array.from({ length: 37 }, (_, index) => gamma(index * 600, 1));
    const text = client(4, windows, { "0": lengths(100, 10), "21600": lengths(7, 3) });
    const { arrivals } = readServeGen(text, { name: "s", startS: 21_000, durationS: 1200 });
    for (const { atMs, request } of arrivals) {
      expect(request).toEqual({
        promptTokens: atMs < 600_000 ? 100 : 7,
        outputTokens: atMs < 600_000 ? 10 : 3,
        blockIds: [],
        sessionKey: undefined,
        tenant: "client-4",
        next: undefined,
      });
    }
    expect(arrivals.some(({ atMs }) => atMs < 600_000) && arrivals.some(({ atMs }) => atMs >= 600_000)).toBe(true);
  });

  it("merges clients in order of time, each a tenant, the same for the same seed", () => {
    const text = [client(0, [gamma(0, 1)]), client(1, [gamma(0, 1)])];
    const read = (seed: number) => readServeGen(text, { name: "s", seed }).arrivals;
    const times = read(1).map(({ atMs }) => atMs);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(new Set(read(1).map(({ request }) => request.tenant))).toEqual(new Set(["client-0", "client-1"]));
    expect(read(1)).toEqual(read(1));
    expect(read(1)).not.toEqual(read(2));
  });

  it("needs no lengths where a client is silent", () => {
    const empty = { input_tokens: "{}", output_tokens: "{}" };
    const text = [client(0, [gamma(0, 1)]), client(1, [silent(0)], { "0": empty })];
    expect(readServeGen(text, { name: "s" }).arrivals.length).toBeGreaterThan(0);
  });

  it("says where the profiles end", () => {
    expect(() => readServeGen(client(0, [gamma(0, 1)]), { name: "s", startS: 300 })).toThrow(
      "300 s to 900 s wanted, but the profiles end at 600 s",
    );
  });

  const expectedRow = "trace[0]: expected START,RATE,CV,Gamma or Weibull,SHAPE,SCALE";
  it.each([
    ["an unknown pattern", client(1, ["0,1,1,Pareto,1,1"]), `${expectedRow}, got "0,1,1,Pareto,1,1"`],
    ["a rate without a pattern", client(1, ["0,1,0,,0,0"]), `${expectedRow}, got "0,1,0,,0,0"`],
    ["a rate that is no number", client(1, ["0,x,1,Gamma,1,1"]), `${expectedRow}, got "0,x,1,Gamma,1,1"`],
    ["a window without a start", client(1, [""]), `${expectedRow}, got ""`],
    ["no lengths in force", client(1, [gamma(0, 1)], { "21600": lengths(1, 1) }), "dataset: expected lengths for 0 s"],
    [
      "empty lengths",
      client(1, [gamma(0, 1)], { "0": { input_tokens: "{}", output_tokens: "{}" } }),
      'dataset: 0: input_tokens: expected {TOKENS: PROBABILITY, ...}, got "{}"',
    ],
  ])("names the place of %s", (_, line, message) => {
    expect(() => readServeGen([client(0, [gamma(0, 1)]), line], { name: "s" })).toThrow(`line 2: ${message}`);
  });
});
