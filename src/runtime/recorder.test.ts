import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { type RecordedRequest, recordedRequestSchema, recordingHeaderSchema, requestProfile } from "../core/index.ts";
import { createLog } from "./log.ts";
import { Recorder, RecordingError } from "./recorder.ts";

const log = createLog({ level: "silent", format: "json" });
const GIB = 2 ** 30;

let file: string;

beforeEach(() => {
  const folder = mkdtempSync(join(tmpdir(), "evenkeel-recorder-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  file = join(folder, "traffic.jsonl");
});

/** A recorder whose clock begins at 5 s, as that of a process that has run for a while. */
function record(maxBytes = GIB): Recorder {
  const recorder = new Recorder({ file, maxBytes }, { nowMs: () => 5_000 }, log);
  onTestFinished(() => recorder.close());
  return recorder;
}

function lines(): unknown[] {
  const text = readFileSync(file, "utf8");
  expect(text.endsWith("\n")).toBe(true);
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as unknown);
}

function recorded(): RecordedRequest[] {
  const [header, ...requests] = lines();
  expect(recordingHeaderSchema.parse(header)).toMatchObject({ version: 1, blockTokens: 64 });
  return requests.map((line) => recordedRequestSchema.parse(line));
}

const COUNTED = { promptTokens: 200, outputTokens: 7 };

describe("a recorder", () => {
  it("writes sizes, blocks and a hashed session after its header", async () => {
    const recorder = record();
    const prefix = { hashes: [11, 12, 13], tokensPerBlock: 64 };
    const known = { promptTokens: 190, model: "m", prefix, sessionKey: "alice@example.org" };
    recorder.record(requestProfile(known), 5_250, COUNTED);
    recorder.record(requestProfile({ ...known, sessionKey: "bob" }), 5_500, COUNTED);
    recorder.record(requestProfile(known), 5_750, COUNTED);
    await recorder.close();
    const [first, second, third] = recorded();
    expect(first).toMatchObject({ in: 200, out: 7, blocks: [11, 12, 13], model: "m" });
    expect(first?.session).toMatch(/^[0-9a-f]{16}$/);
    expect(first?.session).toBe(third?.session);
    expect(first?.session).not.toBe(second?.session);
    expect(readFileSync(file, "utf8")).not.toContain("alice");
    expect([first?.at, second?.at, third?.at]).toEqual([250, 500, 750]);
  });

  it("leaves out what is not known", async () => {
    const recorder = record();
    recorder.record(requestProfile({ promptTokens: 9 }), 5_000, { promptTokens: undefined, outputTokens: 1 });
    await recorder.close();
    expect(recorded()).toEqual([{ at: 0, in: 9, out: 1 }]);
  });

  it("leaves out a request whose output was not counted", async () => {
    const recorder = record();
    for (const outputTokens of [undefined, 0, 1.5, Number.NaN]) {
      recorder.record(requestProfile({ promptTokens: 9 }), 5_000, { promptTokens: 9, outputTokens });
    }
    await recorder.close();
    expect(recorded()).toEqual([]);
  });

  it("takes no more blocks than the prompt has tokens for", async () => {
    const recorder = record();
    const prefix = { hashes: [1, 2, 3, 4], tokensPerBlock: 40 };
    recorder.record(requestProfile({ promptTokens: 160, prefix }), 5_000, { promptTokens: 160, outputTokens: 1 });
    await recorder.close();
    expect(recorded()[0]?.blocks).toEqual([1, 2]);
  });

  it("goes on with a recording of an earlier run, its times counted from the same start", async () => {
    const startedAt = Date.now() - 3_600_000;
    writeFileSync(file, `{"evenkeel":"recording","version":1,"blockTokens":64,"startedAt":${startedAt}}\n`);
    const recorder = record();
    recorder.record(requestProfile({ promptTokens: 9 }), 5_000, COUNTED);
    await recorder.close();
    expect(recorded()).toHaveLength(1);
    expect(recorded()[0]?.at).toBeGreaterThanOrEqual(3_600_000);
  });

  it.each([
    ["something else", "a: 1\n"],
    ["no line at all", "{"],
    ["a recording that was not made live", '{"evenkeel":"recording","version":1,"blockTokens":16}\n'],
  ])("does not touch a file that holds %s", (_what, text) => {
    writeFileSync(file, text);
    expect(() => record()).toThrow(RecordingError);
    expect(readFileSync(file, "utf8")).toBe(text);
  });

  it("says why a file cannot be opened", () => {
    file = join(file, "nowhere", "traffic.jsonl");
    expect(() => record()).toThrow(`cannot record to ${file}: ENOENT`);
  });

  it("ends before the file is larger than it may be", async () => {
    const recorder = record(200);
    for (let i = 0; i < 100; i++) recorder.record(requestProfile({ promptTokens: 9 }), 5_000, COUNTED);
    await recorder.close();
    expect(readFileSync(file).length).toBeLessThanOrEqual(200);
    expect(recorded().length).toBeGreaterThan(0);
  });

  it("keeps only so much in memory when the disk is slow", async () => {
    const recorder = record();
    const prefix = { hashes: Array.from({ length: 20_000 }, (_, i) => 2 ** 51 + i), tokensPerBlock: 64 };
    const long = requestProfile({ promptTokens: 64 * 20_000, prefix });
    const sizes = { promptTokens: undefined, outputTokens: 1 };
    // Nothing reaches the disk within one turn of the event loop.
    for (let i = 0; i < 100; i++) recorder.record(long, 5_000, sizes);
    await recorder.close();
    expect(readFileSync(file).length).toBeLessThan(6 * 1024 * 1024);
    expect(recorded().length).toBeGreaterThan(0);
  });

  it("takes no more once it is closed", async () => {
    const recorder = record();
    await recorder.close();
    recorder.record(requestProfile({ promptTokens: 9 }), 5_000, COUNTED);
    await recorder.close();
    expect(recorded()).toEqual([]);
  });
});

describe.runIf(process.platform === "linux")("a full disk", () => {
  it("ends the recording, is told once, and stops nothing else", async () => {
    const told: string[] = [];
    const telling = pino({ level: "warn" }, { write: (line: string) => void told.push(line) });
    const recorder = new Recorder({ file: "/dev/full", maxBytes: GIB }, { nowMs: () => 0 }, telling);
    for (let i = 0; i < 3; i++) {
      recorder.record(requestProfile({ promptTokens: 9 }), 0, COUNTED);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await recorder.close();
    expect(told).toHaveLength(1);
    expect(told[0]).toContain("ENOSPC");
  });
});
