import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { describe, expect, it, onTestFinished } from "vitest";
import { until } from "../../../test/support/until.ts";
import type { EndpointConfig } from "../../config/index.ts";
import { monotonicClock } from "../clock.ts";
import { FileSource } from "./file-source.ts";

function follow(text?: string): { path: string; found: (readonly EndpointConfig[])[]; lines: string[] } {
  const folder = mkdtempSync(join(tmpdir(), "evenkeel-list-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "endpoints.yaml");
  if (text !== undefined) writeFileSync(path, text);
  const found: (readonly EndpointConfig[])[] = [];
  const lines: string[] = [];
  const log = pino({}, { write: (line) => lines.push(line) });
  const source = new FileSource(path, { clock: monotonicClock, log }, (endpoints) => found.push(endpoints), 5);
  source.start();
  onTestFinished(() => source.stop());
  return { path, found, lines };
}

describe("FileSource", () => {
  it("finds what is listed, and again what is listed then", async () => {
    const { path, found } = follow("- http://a:1\n- { url: http://b:2, id: b, weight: 3 }\n");
    await until(() => found.length === 1);
    expect(found[0]).toMatchObject([
      { id: "a:1", url: "http://a:1", weight: 1 },
      { id: "b", url: "http://b:2", weight: 3 },
    ]);
    writeFileSync(path, '[{ "url": "http://c:3" }]');
    await until(() => found.length === 2);
    expect(found[1]).toMatchObject([{ id: "c:3" }]);
    writeFileSync(path, "[]");
    await until(() => found.length === 3);
    expect(found[2]).toEqual([]);
  });

  it("says what is wrong with a list, and finds nothing by it", async () => {
    const { path, found, lines } = follow("- http://a:1\n");
    await until(() => found.length === 1);
    writeFileSync(path, "- { url: http://a:1, wieght: 3 }\n");
    await until(() => lines.length === 1);
    expect(lines[0]).toMatch(/endpoints\.yaml:1:\d+.*wieght/);
    expect(found).toHaveLength(1);
    writeFileSync(path, "- http://b:1\n");
    await until(() => found.length === 2);
  });

  it("waits for a file that is not there yet", async () => {
    const { path, found, lines } = follow();
    await until(() => lines.length === 1);
    expect(lines[0]).toMatch(/not readable \(ENOENT\)/);
    writeFileSync(path, "- http://a:1\n");
    await until(() => found.length === 1);
  });
});
