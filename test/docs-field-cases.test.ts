import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const page = readFileSync(new URL("../docs/field-cases.md", import.meta.url), "utf8");

interface Row {
  /** The first cells; the last one says what shows it. */
  readonly cells: readonly string[];
  readonly tests: readonly { readonly path: string; readonly title: string }[];
}

/** A test's title as it stands in its file. */
const TITLE = /"((?:\\\||[^"|])+)"/g;

function readRow(line: string): Row {
  const cells = line
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim());
  const shownBy = cells.at(-1) ?? "";
  const tests = shownBy.split("<br>").flatMap((part) => {
    const [, path = ""] = /^\[[\w-]+\]\(\.\.\/(\S+\.test\.ts)\): /.exec(part) ?? [];
    return [...part.matchAll(TITLE)].map(([, title = ""]) => ({ path, title: title.replaceAll("\\|", "|") }));
  });
  return { cells, tests };
}

/** Rows of both tables, without their heads. */
const rows = page
  .split("\n")
  .filter((line) => line.startsWith("| ") && !/^\| (Case|Engine) \|/.test(line))
  .map(readRow);

const texts = new Map<string, string>();

/** Undefined: there is no such file. */
function textOf(path: string): string | undefined {
  const file = fileURLToPath(new URL(`../${path}`, import.meta.url));
  if (!texts.has(path) && existsSync(file)) texts.set(path, readFileSync(file, "utf8"));
  return texts.get(path);
}

describe("docs/field-cases.md", () => {
  it("has each case once, in order", () => {
    const cases = rows.map(({ cells }) => cells[0]).filter((name) => /^F\d/.test(name ?? ""));
    expect(cases).toEqual(Array.from({ length: 93 }, (_, i) => `F${String(i + 1).padStart(2, "0")}`));
  });

  it("has what the engines do below", () => {
    const engines = new Set(rows.map(({ cells }) => cells[0]).filter((name) => !/^F\d/.test(name ?? "")));
    expect(engines).toEqual(new Set(["llama.cpp", "vLLM", "transformers serve"]));
  });

  it.each(rows.map(({ cells, tests }) => [cells.slice(0, -1).join(": "), tests] as const))(
    "names tests that exist for %s",
    (_, tests) => {
      expect(tests).not.toEqual([]);
      const missing = tests.filter(({ path, title }) => {
        const text = textOf(path);
        return text === undefined || !['"', "'", "`"].some((quote) => text.includes(quote + title + quote));
      });
      expect(missing).toEqual([]);
    },
  );
});
