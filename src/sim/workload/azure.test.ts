import { describe, expect, it } from "vitest";
import { AZURE_HEADER, readAzure } from "./azure.ts";

const trace = (...rows: string[]) => [AZURE_HEADER, ...rows].join("\r\n");
const times = (...stamps: string[]) =>
  readAzure(trace(...stamps.map((stamp) => `${stamp},10,1`)), { name: "a" }).arrivals.map(({ atMs }) => atMs);

describe("readAzure", () => {
  it("reads sizes and times, counted from the first request", () => {
    const workload = readAzure(trace("2023-11-16 18:15:46.6805900,374,44", "2023-11-16 18:15:50.9951690,396,109"), {
      name: "azure.csv",
    });
    expect(workload.name).toBe("azure.csv");
    expect(workload.arrivals.map(({ request }) => request)).toEqual(
      [
        { promptTokens: 374, outputTokens: 44 },
        { promptTokens: 396, outputTokens: 109 },
      ].map((sizes) => ({ ...sizes, blockIds: [], sessionKey: undefined, tenant: undefined, next: undefined })),
    );
    expect(workload.arrivals[0]?.atMs).toBe(0);
    expect(workload.arrivals[1]?.atMs).toBeCloseTo(4314.579, 6);
  });

  it.each([
    ["midnight", ["2023-11-16 23:59:59.5", "2023-11-17 00:00:00.5"], 1000],
    ["a leap day", ["2024-02-28 00:00:00", "2024-03-01 00:00:00"], 2 * 86_400_000],
    ["a February without one", ["2023-02-28 00:00:00", "2023-03-01 00:00:00"], 86_400_000],
    ["a new year", ["2023-12-31 23:00:00", "2024-01-01 01:00:00"], 7_200_000],
    ["all of a leap year", ["2024-01-01 00:00:00", "2025-01-01 00:00:00"], 366 * 86_400_000],
    ["the time zone that the 2024 files write", ["2024-05-10 00:00:00.25+00:00", "2024-05-10 00:00:01+00:00"], 750],
  ])("counts across %s", (_, stamps, gapMs) => {
    expect(times(...stamps)).toEqual([0, gapMs]);
  });

  it("puts rows in order of time", () => {
    expect(times("2023-11-16 10:00:02", "2023-11-16 10:00:00", "2023-11-16 10:00:01")).toEqual([0, 1000, 2000]);
  });

  it.each([
    ["a missing column", "2023-11-16 18:15:46.68,374"],
    ["a size that is no number", "2023-11-16 18:15:46.68,many,44"],
    ["part of a token", "2023-11-16 18:15:46.68,3.5,44"],
    ["a month 13", "2023-13-16 18:15:46.68,374,44"],
    ["an hour 24", "2023-11-16 24:15:46.68,374,44"],
  ])("names the line with %s", (_, row) => {
    expect(() => readAzure(trace("2023-11-16 18:15:46,1,1", "", row), { name: "a" })).toThrow(
      `line 4: expected YYYY-MM-DD hh:mm:ss.fffffff,TOKENS,TOKENS, got "${row}"`,
    );
  });

  it("refuses other columns", () => {
    expect(() => readAzure("a,b\n1,2", { name: "a" })).toThrow(
      `line 1: expected the columns ${AZURE_HEADER}, got "a,b"`,
    );
  });
});
