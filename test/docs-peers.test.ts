import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { peerPolicies } from "../src/sim/index.ts";

const page = readFileSync(new URL("../docs/policies/peers.md", import.meta.url), "utf8");

describe("docs/policies/peers.md", () => {
  it("lists the comparison policies with their classes, in the order of the table", () => {
    const rows = page.split("\n").filter((line) => line.startsWith("| `"));
    const listed = rows.map((row) => row.split(" | ")).map(([name, , kind]) => `${name} ${kind}`);
    expect(listed).toEqual(
      peerPolicies.map(({ definition, class: kind }) => `| \`${definition.name}\` ${kind.replace("_", " ")}`),
    );
  });

  it("names a source for each", () => {
    for (const row of page.split("\n").filter((line) => line.startsWith("| `"))) {
      expect(row.split(" | ")).toHaveLength(5);
    }
  });
});
