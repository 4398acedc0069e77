import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ENGINE_KINDS, type EngineSignals } from "../../src/core/index.ts";
import { type EngineAdapter, engineAdapters } from "../../src/signals/index.ts";
import { engineSignals } from "../support/engine-signals.ts";
import { engineTexts } from "./engine-texts.ts";

const adapters: readonly EngineAdapter[] = Object.values(engineAdapters);

/** Vocabularies that are shared on purpose. */
const speaksLike = (a: EngineAdapter, b: EngineAdapter): boolean => a.readSignals === b.readSignals;

describe.each(adapters.map((adapter) => [adapter.kind, adapter] as const))("engine adapter %s", (kind, adapter) => {
  const { metrics, signals, healthy, loading } = engineTexts[kind];
  const read = (text: string): EngineSignals => adapter.readSignals(text, 42);
  const samples = metrics.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const withEach = (change: (line: string) => string): string => samples.map(change).join("\n");

  it("stands in the table under its own name", () => {
    expect(engineAdapters[kind].kind).toBe(kind);
  });

  it("asks for absolute paths, and never where reading consumes", () => {
    expect(adapter.healthPath).toMatch(/^\/[a-z]/);
    if (adapter.metricsPath !== undefined) expect(adapter.metricsPath).toMatch(/^\/[a-z/]*metrics$/);
    if (kind === "trtllm") expect(adapter.metricsPath).not.toBe("/metrics");
  });

  describe("health", () => {
    it("is ok by its own good answer", () => {
      expect(adapter.readHealth(200, healthy)).toEqual({ kind: "ok" });
    });

    if (loading !== undefined) {
      it("is loading, no failure, by its own answer while it loads", () => {
        expect(adapter.readHealth(loading.status, loading.body).kind).toBe("loading");
      });
    }

    it.each<[number, string, string]>([
      [401, healthy, "auth_failed"],
      [403, healthy, "auth_failed"],
      [301, "", "failed"],
      [404, '{"detail":"Not Found"}', "failed"],
      [500, healthy, "failed"],
      [503, "", "failed"],
      [200, "<!doctype html><title>An application</title>", "failed"],
    ])("%i with %j is %s", (status, body, expected) => {
      expect(adapter.readHealth(status, body).kind).toBe(expected);
    });

    it("is read from any answer without throwing, and never says what the answer held", () => {
      fc.assert(
        fc.property(fc.integer({ min: 100, max: 599 }), fc.oneof(fc.string(), fc.json()), (status, body) => {
          const reading = adapter.readHealth(status, `${body}s3cret`);
          expect(JSON.stringify(reading)).not.toContain("s3cret");
          if (reading.kind === "ok") expect(Math.floor(status / 100)).toBe(2);
        }),
      );
    });
  });

  describe("signals", () => {
    it("are read from its own metrics", () => {
      expect(read(metrics)).toEqual(engineSignals({ ...signals, observedAtMs: 42 }));
    });

    it.each(["", "\n", "# EOF\n", "<html></html>", '{"a":1}', "\u0000"])("are unknown, not zero, in %j", (text) => {
      expect(read(text)).toEqual(engineSignals({ observedAtMs: 42 }));
    });

    it.each(adapters.filter((other) => !speaksLike(adapter, other)).map((other) => other.kind))(
      "are not taken from the metrics of %s",
      (other) => {
        expect(read(engineTexts[other].metrics)).toEqual(engineSignals({ observedAtMs: 42 }));
      },
    );

    it("are found by whole names only", () => {
      expect(read(withEach((line) => line.replace(/^[a-z_:]+/, "$&_by_reason")))).toEqual(read(""));
      expect(read(withEach((line) => `x${line}`))).toEqual(read(""));
    });

    it.each(["NaN", "+Inf", "-Inf", "-1", "nonsense"])("are unknown where every value is %s", (value) => {
      expect(read(withEach((line) => line.replace(/\S+$/, value)))).toEqual(read(""));
    });

    it("are the same with time stamps, with carriage returns, in any order and after metrics of the process", () => {
      expect(read(withEach((line) => `${line} 1716239022000`))).toEqual(read(metrics));
      expect(read(metrics.replaceAll("\n", "\r\n"))).toEqual(read(metrics));
      expect(read(samples.toReversed().join("\n"))).toEqual(read(metrics));
      expect(read(`process_open_fds 12\npython_info{version="3"} 1\n${metrics}`)).toEqual(read(metrics));
    });

    it("are zero where the engine says zero", () => {
      const zeros = read(withEach((line) => line.replace(/\S+$/, "0")));
      for (const name of ["runningRequests", "waitingRequests", "promptTokensTotal"] as const) {
        expect(zeros[name]).toBe(signals[name] === undefined ? undefined : 0);
      }
    });

    it("never throw, and are unknown or a sane number, whatever the text", () => {
      const line = samples.length === 0 ? fc.string() : fc.oneof(fc.constantFrom(...samples), fc.string());
      const number = fc.oneof(fc.double(), fc.constantFrom("1e308", "-0", "NaN", "", "1e", "0x1", "9".repeat(400)));
      const damaged = fc
        .tuple(line, number, fc.nat(200))
        .chain(([text, value, cut]) =>
          fc.constantFrom(text, text.replace(/\S+$/, String(value)), text.slice(0, cut), text.slice(cut) + text),
        );
      fc.assert(
        fc.property(fc.array(damaged, { maxLength: 40 }), (lines) => {
          const { observedAtMs, ...values } = read(lines.join("\n"));
          expect(observedAtMs).toBe(42);
          for (const value of Object.values(values)) {
            if (value !== undefined) expect(value >= 0 && Number.isFinite(value)).toBe(true);
          }
          expect(values.kvUsedRatio ?? 0).toBeLessThanOrEqual(1);
        }),
        { numRuns: 200 },
      );
    });
  });

  it("has its row in docs/engines.md", () => {
    const row = documentedRows.get(kind);
    expect(row?.slice(0, 4)).toEqual([
      adapter.title,
      `\`GET ${adapter.healthPath}\``,
      adapter.metricsPath === undefined ? "none" : `\`GET ${adapter.metricsPath}\``,
      adapter.metricsSwitch === undefined ? "" : `\`${adapter.metricsSwitch}\``,
    ]);
  });
});

/** Cells of the first table of docs/engines.md by engine kind. */
const documentedRows: ReadonlyMap<string, readonly string[]> = new Map(
  readFileSync(new URL("../../docs/engines.md", import.meta.url), "utf8")
    .split("\n")
    .map((line) => /^\| `(\w+)` \|(.*)\|$/.exec(line))
    .filter((match) => match !== null)
    .map(([, kind, cells]) => [kind ?? "", (cells ?? "").split("|").map((cell) => cell.trim())]),
);

describe("engine adapters together", () => {
  it("cover every engine kind, and docs/engines.md lists no other", () => {
    expect(Object.keys(engineAdapters)).toEqual([...ENGINE_KINDS]);
    expect([...documentedRows.keys()]).toEqual([...ENGINE_KINDS]);
  });

  it("share no owner, so that a model list names one engine", () => {
    const owners = adapters.flatMap(({ ownedBy }) => ownedBy);
    expect(new Set(owners).size).toBe(owners.length);
  });
});
