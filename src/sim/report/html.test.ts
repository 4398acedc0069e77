import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { describe, expect, it } from "vitest";
import { sampleResult } from "../../../test/support/sample-results.ts";
import { PAGE_FILES, type PageAssets, renderHtml } from "./html.ts";
import type { Report } from "./report.ts";
import { summarize } from "./summary.ts";

const { resolve } = createRequire(import.meta.url);
const ASSETS: PageAssets = {
  plotJs: readFileSync(resolve("uplot/dist/uPlot.iife.min.js"), "utf8"),
  plotCss: readFileSync(resolve("uplot/dist/uPlot.min.css"), "utf8"),
  pageModules: PAGE_FILES.map((file) => readFileSync(new URL(file, import.meta.url), "utf8")),
};
const SLO = { ttftMs: 2000, tpotMs: 50 };

function sample(policies: readonly string[], requests = 200, endpoints = 4): Report {
  const results = policies.map((policy, index) =>
    sampleResult({ policy, requests, endpoints, slowness: 1 + index / 2, holds: index === 0 }),
  );
  return {
    command: "evenkeel simulate azure-2023-conv.csv --fleet 4*llama8b-h100",
    settings: { seed: "1" },
    slo: SLO,
    results,
    base: policies[0],
    sweep: results.map((result) => ({ variable: "rate", value: 1, summary: summarize(result, SLO) })),
  };
}

const scriptsOf = (html: string): string[] =>
  [...html.matchAll(/<script[^>]*>(.*?)<\/script>/gs)].map(([, text]) => text ?? "");

describe("renderHtml", () => {
  it("is one file that loads nothing", () => {
    const html = renderHtml(sample(["least_delay", "round_robin"]), ASSETS);
    expect(html.includes("default-src 'none'")).toBe(true);
    // The match, not the page: a failure must stay readable.
    expect(html.match(/<link|<img|<iframe|\ssrc=|url\(|@import url/g)).toBeNull();
  });

  it("has three scripts: data, library, and a page of one module", () => {
    const scripts = scriptsOf(renderHtml(sample(["least_delay"]), ASSETS));
    expect(scripts).toHaveLength(3);
    expect(JSON.parse(scripts[0] ?? "").policies).toEqual(["least_delay"]);
    expect(scripts[1]).toBe(ASSETS.plotJs);
    expect(scripts[2]?.match(/^(import|export) .*/m)).toBeNull();
    // Two files that use one name would make a module that no browser takes.
    expect(() => new Function(scripts[2] ?? "")).not.toThrow();
  });

  it("gives each plot that its script draws a place", () => {
    const html = renderHtml(sample(["least_delay"]), ASSETS);
    const places = [...html.matchAll(/data-plot="(\w+)"/g)].map(([, name]) => name);
    const [, definition = ""] = /const plots = {(.*?)^};/ms.exec(ASSETS.pageModules.join("\n")) ?? [];
    expect(places.sort()).toEqual([...definition.matchAll(/^ {2}(\w+):/gm)].map(([, name]) => name).sort());
  });

  it("leaves out what was not asked for", () => {
    const report = sample(["least_delay"]);
    const placesOf = (html: string): string[] => html.match(/data-plot="\w+"/g) ?? [];
    expect(placesOf(renderHtml({ ...report, sweep: [] }, ASSETS))).not.toContain('data-plot="goodput"');
    expect(placesOf(renderHtml({ ...report, results: [], base: undefined }, ASSETS))).toEqual([
      'data-plot="goodput"',
      'data-plot="metric"',
    ]);
  });

  it("shows names and settings as text, whatever is in them", () => {
    const name = "</script><script>alert(1)</script><!--\"'&";
    const report = { ...sample([name]), command: name, settings: { [name]: name } };
    const html = renderHtml(report, ASSETS);
    expect(html.match(/<script>alert|<!--/)).toBeNull();
    expect(scriptsOf(html)).toHaveLength(3);
    expect(JSON.parse(scriptsOf(html)[0] ?? "").policies).toEqual([name]);
  });

  it("stays under 3 MB for ten policies on 16 endpoints", () => {
    const policies = Array.from({ length: 10 }, (_, index) => `policy_${index}`);
    expect(renderHtml(sample(policies, 12_000, 16), ASSETS).length).toBeLessThan(3_000_000);
  });
});
