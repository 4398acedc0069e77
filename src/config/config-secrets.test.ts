import { describe, expect, it } from "vitest";
import { readConfig } from "./load-config.ts";
import { formatProblem } from "./problem.ts";

/** The report as it is printed; empty: there is nothing wrong. */
function reportOf(text: string, environment: Record<string, string>): string {
  const read = readConfig({ file: { name: "evenkeel.yaml", text }, environment });
  return read.ok ? "" : read.problems.map(formatProblem).join("\n");
}

describe("secrets of a configuration", () => {
  const secret = "x7!q9z";
  it.each([
    ["a key of the wrong form", `endpoints: [{ url: "a:1", apiKey: "${secret} " }]`],
    ["a key in the wrong type", `endpoints: [{ url: "a:1", apiKey: [${JSON.stringify(secret)}] }]`],
    ["a mistyped name", `endpoints: [{ url: "a:1", api_key: "${secret}" }]`],
    ["a password in a URL", `endpoints: ["http://user:${secret}@a:1"]`],
    ["a password in a URL without scheme", `endpoints: ["user:${secret}@a:1"]`],
    ["a key in the query of a URL", `endpoints: ["http://a:1/?key=${secret}"]`],
    ["a URL in the wrong place", `listen: "http://user:${secret}@a:1"`],
    ["an interpolated value", `failover: { attempts: "\${SECRET}" }`],
    ["an interpolated value through an alias", `x: &x "\${SECRET}"\nfailover: { attempts: *x }`],
    ["an unfinished interpolation", `endpoints: [{ url: "a:1", apiKey: "${secret}\${KEY" }]`],
    ["a line that is no YAML", `endpoints: [a:1]\n${secret}\nlisten: x`],
    ["a token out of place", `endpoints: "a:1" ${secret}: x`],
    ["a reserved character", `endpoints: @${secret}`],
  ])("are not in the report of %s", (_what, text) => {
    const report = reportOf(text, { SECRET: secret });
    expect(report.trim()).not.toBe("");
    expect(report).not.toContain(secret);
  });
});
