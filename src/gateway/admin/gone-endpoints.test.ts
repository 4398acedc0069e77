import { Counter, Histogram, Registry } from "prom-client";
import { expect, it, onTestFinished } from "vitest";
import { testConfig, testEndpoint, testPool } from "../../../test/support/test-config.ts";
import { until } from "../../../test/support/until.ts";
import { Runtime } from "../../runtime/index.ts";
import { GoneEndpoints } from "./gone-endpoints.ts";

it("keeps the series of endpoints that are gone, but of no more than so many", async () => {
  const config = testConfig([]);
  const withEndpoints = (...ids: readonly string[]) => ({
    ...config,
    pools: [testPool([], { endpoints: ids.map((id) => testEndpoint(id, `http://${id}:1`)) })],
  });
  const runtime = new Runtime(withEndpoints("a", "b", "c"));
  onTestFinished(() => runtime.close());
  const registry = new Registry();
  const labelNames = ["pool", "endpoint"];
  const counter = new Counter({ name: "c", help: "h", labelNames: [...labelNames, "why"], registers: [registry] });
  const histogram = new Histogram({ name: "h", help: "h", labelNames, buckets: [1], registers: [registry] });
  for (const endpoint of ["a", "b", "c", "d"]) {
    counter.inc({ pool: "default", endpoint, why: "x" });
    counter.inc({ pool: "default", endpoint, why: "y" });
    histogram.observe({ pool: "default", endpoint }, 1);
  }
  const dropped: string[] = [];
  new GoneEndpoints(registry, (_pool, endpoint) => dropped.push(endpoint), 2).follow(runtime);
  const endpoints = async (): Promise<readonly string[]> => {
    const text = await registry.metrics();
    return [...new Set([...text.matchAll(/endpoint="(\w)"/g)].map(([, id]) => id ?? ""))].sort();
  };
  runtime.reconfigure(withEndpoints("b", "c"));
  runtime.reconfigure(withEndpoints("a", "b", "c"));
  runtime.reconfigure(withEndpoints("c", "d"));
  expect(await endpoints()).toEqual(["a", "b", "c", "d"]);
  runtime.reconfigure(withEndpoints("d"));
  await until(async () => (await endpoints()).length === 3);
  // It went together with b, and before it in the order of the pool.
  expect(dropped).toEqual(["a"]);
  expect(await endpoints()).toEqual(["b", "c", "d"]);
  expect(await registry.getSingleMetricAsString("h")).not.toContain('endpoint="a"');
});
