import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { policyDefinitions } from "../src/core/index.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");

it("README.md shows what its first simulation prints, with columns left out", async () => {
  const [, flags = ""] = /^npx evenkeel simulate (.*)$/m.exec(readme) ?? [];
  const [, shown = ""] = /and prints \(a few columns left out\):\n\n```text\n(.*?)```/s.exec(readme) ?? [];
  const program = ["--import", "tsx", "src/cli/main.ts", "simulate", ...flags.split(" ")];
  const { stdout } = await promisify(execFile)(process.execPath, program, { cwd: root });
  const printed = new Map(
    stdout
      .split("\n\n")[0]
      ?.split("\n")
      .map((line) => [wordsOf(line)[0], wordsOf(line)]),
  );
  const [, ...rows] = shown.trimEnd().split("\n");
  expect(rows.map((row) => wordsOf(row)[0])).toEqual(wordsOf(flags)[1]?.split(","));
  for (const row of rows) expect(inOrder(wordsOf(row), printed.get(wordsOf(row)[0]) ?? [])).toEqual(wordsOf(row));
}, 60_000);

it("README.md lists all policies", () => {
  const listed = [...readme.matchAll(/\[`(\w+)`\]\(docs\/policies\/\1\.md\)/g)].map(([, name]) => name);
  expect(listed.toSorted()).toEqual(policyDefinitions.map(({ name }) => name).toSorted());
});

/** Stars mark what is best of its column. */
function wordsOf(line: string): string[] {
  return line.trim().replaceAll("*", "").split(/\s+/);
}

/** Those of `words` that come in `text` in this order. */
function inOrder(words: readonly string[], text: readonly string[]): string[] {
  let from = 0;
  return words.filter((word) => {
    const at = text.indexOf(word, from);
    if (at >= 0) from = at + 1;
    return at >= 0;
  });
}
