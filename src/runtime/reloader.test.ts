import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { describe, expect, it, onTestFinished } from "vitest";
import { testConfig } from "../../test/support/test-config.ts";
import { until } from "../../test/support/until.ts";
import { loadConfig } from "../config/index.ts";
import { monotonicClock } from "./clock.ts";
import { compareConfigs } from "./reconfiguration.ts";
import { Reloader } from "./reloader.ts";

/** A reloader over a file that the test writes, and what it logs. */
function follow(text: string): { reloader: Reloader; path: string; lines: string[]; write(text: string): void } {
  const folder = mkdtempSync(join(tmpdir(), "evenkeel-reload-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "evenkeel.yaml");
  const write = (other: string): void => writeFileSync(path, other);
  write(text);
  const load = () => loadConfig(path, {});
  let current = load();
  const lines: string[] = [];
  const log = pino({}, { write: (line) => lines.push(line) });
  const reloader = new Reloader(
    { file: path, load },
    (config) => {
      if (!current.ok) throw new Error("the first text is wrong");
      const report = compareConfigs(current.value, config);
      if (report.kind === "applied") current = { ok: true, value: config };
      return report;
    },
    { clock: monotonicClock, log, watchIntervalMs: 5 },
  );
  reloader.start();
  onTestFinished(() => reloader.stop());
  return { reloader, path, lines, write };
}

describe("Reloader", () => {
  it("reads the file again when it changes, and not for what it was started with", async () => {
    const { reloader, write } = follow("endpoints: [http://a:1]\n");
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(reloader.counts).toEqual({ applied: 0, unchanged: 0, invalid: 0, needs_restart: 0 });
    write("endpoints: [http://a:1, http://b:2]\n");
    await until(() => reloader.counts.applied === 1);
    write("# the same\nendpoints: [http://a:1, http://b:2]\n");
    await until(() => reloader.counts.unchanged === 1);
    expect(reloader.isUpToDate).toBe(true);
  });

  it("says what is wrong with the file, in a line, and goes on", async () => {
    const { reloader, lines, write } = follow("endpoints: [http://a:1]\n");
    // The first look has been: what comes is a change.
    await new Promise((resolve) => setTimeout(resolve, 30));
    write("endpoints: [http://a:1]\npolicy: fastest\n");
    await until(() => reloader.counts.invalid === 1);
    expect(reloader.isUpToDate).toBe(false);
    expect(lines.at(-1)).toMatch(/evenkeel\.yaml:2:9: policy is/);
    write("endpoints: [http://a:1]\nlisten: 127.0.0.1:1\n");
    await until(() => reloader.counts.needs_restart === 1);
    expect(lines.at(-1)).toMatch(/"settings":\["listen"\]/);
    write("endpoints: [http://a:1]\npolicy: round_robin\n");
    await until(() => reloader.counts.applied === 1);
    expect(reloader.isUpToDate).toBe(true);
    expect(lines.at(-1)).toMatch(/"trigger":"file","changed":\["pools"\]/);
  });

  it("can be asked where there is no file to watch, and says so where there is nothing to read", () => {
    const log = pino({ level: "silent" });
    const value = testConfig(["http://a:1"]);
    const parts = { clock: monotonicClock, log };
    const load = () => ({ ok: true, value }) as const;
    const reloader = new Reloader({ file: undefined, load }, () => ({ kind: "unchanged" }), parts);
    expect(reloader.reload("signal")).toEqual({ kind: "unchanged" });
    expect(new Reloader(undefined, () => ({ kind: "unchanged" }), parts).reload("api")).toEqual({ kind: "no_source" });
  });
});

describe("compareConfigs", () => {
  const before = testConfig(["http://a:1"]);

  it.each<[string, Partial<typeof before>]>([
    ["listen", { listen: { host: "::", port: 1 } }],
    ["admin", { admin: undefined }],
    ["log", { log: { level: "debug", format: "json" } }],
    ["recording", { recording: { file: "f", maxBytes: 1 } }],
    ["limits.headerBytes", { limits: { ...before.limits, headerBytes: 1 } }],
  ])("leaves %s to a restart, whatever else is new", (name, change) => {
    const after = { ...before, ...change, passthrough: ["/x"] };
    expect(compareConfigs(before, after)).toEqual({ kind: "needs_restart", settings: [name] });
  });

  it("names what is new", () => {
    expect(compareConfigs(before, { ...before, passthrough: ["/x"], tenantKey: ["header:x-team"] })).toEqual({
      kind: "applied",
      changed: ["tenantKey", "passthrough"],
    });
    expect(compareConfigs(before, testConfig(["http://a:1"]))).toEqual({ kind: "unchanged" });
  });
});
