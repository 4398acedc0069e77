import { describe, expect, it } from "vitest";
import { readMooncake } from "./mooncake.ts";

const row = (timestamp: unknown, fields: object = {}) =>
  JSON.stringify({ timestamp, input_length: 600, output_length: 5, hash_ids: [0, 1], ...fields });
const times = (...timestamps: number[]) =>
  readMooncake(
    timestamps.map((timestamp) => row(timestamp)),
    { name: "m" },
  ).arrivals.map(({ atMs }) => atMs);

describe("readMooncake", () => {
  it("reads sizes and blocks", () => {
    const workload = readMooncake(row(7, { input_length: 1025, output_length: 9, hash_ids: [0, 4, 2] }), { name: "m" });
    expect(workload.blockTokens).toBe(512);
    expect(workload.arrivals).toEqual([
      {
        atMs: 7,
        request: {
          promptTokens: 1025,
          outputTokens: 9,
          blockIds: [0, 4, 2],
          sessionKey: undefined,
          tenant: undefined,
          next: undefined,
        },
      },
    ]);
  });

  it("spreads the rows of one timestamp over the tick of a coarse clock", () => {
    expect(times(0, 0, 0, 0, 3000, 6000, 6000)).toEqual([0, 750, 1500, 2250, 3000, 6000, 7500]);
  });

  it("takes a tick from the shortest step, also after a silence", () => {
    expect(times(0, 0, 9000, 9000, 12_000)).toEqual([0, 1500, 9000, 10_500, 12_000]);
  });

  it("leaves a trace in milliseconds as it is", () => {
    expect(times(0, 150, 152, 152, 800)).toEqual([0, 150, 152, 153, 800]);
  });

  it("draws the places within a tick of its seed, and keeps the order of the rows", () => {
    const rows = Array.from({ length: 9 }, (_, index) => row(3000 * Math.floor(index / 3), { output_length: index }));
    const arrivalsOf = (seed: number) => readMooncake(rows, { name: "m", seed }).arrivals;
    const drawn = arrivalsOf(1);
    expect(arrivalsOf(1)).toEqual(drawn);
    expect(arrivalsOf(2)).not.toEqual(drawn);
    expect(drawn.map(({ request }) => request.outputTokens)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    expect(drawn.map(({ atMs }) => Math.floor(atMs / 3000))).toEqual([0, 0, 0, 1, 1, 1, 2, 2, 2]);
    expect(drawn.map(({ atMs }) => atMs)).toEqual(drawn.map(({ atMs }) => atMs).toSorted((a, b) => a - b));
  });

  it("spreads nothing where there is one timestamp only", () => {
    expect(times(5, 5, 5)).toEqual([5, 5, 5]);
  });

  it("puts rows in order of time", () => {
    expect(times(3000, 0)).toEqual([0, 3000]);
  });

  it.each([
    ["timestamp", row("soon"), 'timestamp: expected a number of at least 0, got "soon"'],
    ["input_length", row(1, { input_length: 0 }), "input_length: expected a whole number of at least 1, got 0"],
    ["output_length", row(1, { output_length: -1 }), "output_length: expected a whole number of at least 0, got -1"],
    ["hash_ids", row(1, { hash_ids: [1, "2"] }), 'hash_ids: expected a list of whole numbers, got [1,"2"]'],
    ["a column", '{"timestamp":1}', "input_length: expected a whole number of at least 1, got nothing"],
    ["JSON", "{oops", 'expected a JSON object, got "{oops"'],
    ["an object", "[1]", "expected a JSON object, got [1]"],
  ])("names the line where %s is wrong", (_, line, message) => {
    expect(() => readMooncake([row(0), line], { name: "m" })).toThrow(`line 2: ${message}`);
  });
});
