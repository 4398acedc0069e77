import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { GatewayMetrics } from "../src/gateway/index.ts";
import { Runtime } from "../src/runtime/index.ts";
import { MetricsTogether } from "../src/workers/index.ts";
import { testConfig } from "./support/test-config.ts";

describe("docs/metrics.md", () => {
  it("lists exactly the metrics there are, with their types and labels", async () => {
    const runtime = new Runtime(testConfig(["http://127.0.0.1:1"]));
    const { registry } = new GatewayMetrics(runtime, { openConnections: () => 0 }, { usedBytes: 0 });
    const primary = new MetricsTogether({ reloader: runtime.reloader, serving: () => 0, deaths: () => 0 });
    const all = new Set([...registry.getMetricsAsArray(), ...primary.registry.getMetricsAsArray()].map(declarationOf));
    const page = readFileSync(new URL("../docs/metrics.md", import.meta.url), "utf8");
    const rows = [...page.matchAll(/^\| `(evenkeel_\w+)` \| (\w+) \| ([^|]*)\|/gm)];
    const listed = rows.map(([, name, type, labels]) =>
      `${name} ${type} ${(labels ?? "").replaceAll(/[`,]/g, "").trim()}`.trim(),
    );
    expect(listed.sort()).toEqual([...all].sort());
  });
});

/** prom-client keeps what a metric was declared with on the object, but types only a part of it. */
function declarationOf(metric: unknown): string {
  const { name, type, labelNames } = metric as { name: string; type: string; labelNames: string[] };
  return `${name} ${type} ${labelNames.join(" ")}`.trim();
}
