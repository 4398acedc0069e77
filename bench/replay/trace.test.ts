import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readTrace } from "./trace.ts";

describe("readTrace", () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "evenkeel-trace-"));
  });
  afterAll(() => rm(directory, { recursive: true }));

  async function traceOf(...lines: readonly string[]): Promise<string> {
    const file = join(directory, "trace.csv");
    await writeFile(file, `${lines.join("\r\n")}\r\n`);
    return file;
  }

  it("takes arrivals from the first request on, up to the last minute asked for", async () => {
    const file = await traceOf(
      "TIMESTAMP,ContextTokens,GeneratedTokens",
      "2023-11-16 18:59:59.5000000,374,44",
      "2023-11-16 19:00:01.2500000,396,109",
      "2023-11-16 19:00:59.5000000,10,11",
    );
    expect(await readTrace(file, 1)).toEqual([
      { arrivalMs: 0, promptTokens: 374, outputTokens: 44 },
      { arrivalMs: 1750, promptTokens: 396, outputTokens: 109 },
    ]);
  });

  it("says where the trace is published when it is absent", async () => {
    await expect(readTrace(join(directory, "absent.csv"), 1)).rejects.toThrow("Azure/AzurePublicDataset");
  });

  it("names the line that is not a request", async () => {
    const file = await traceOf("TIMESTAMP,ContextTokens,GeneratedTokens", "2023-11-16 18:59:59.5000000,many,44");
    await expect(readTrace(file, 1)).rejects.toThrow("trace.csv:2");
  });

  it("refuses a file with other columns", async () => {
    await expect(readTrace(await traceOf("a,b,c", "1,2,3"), 1)).rejects.toThrow("expected the columns");
  });
});
