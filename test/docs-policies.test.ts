import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { policyDefinitions } from "../src/core/index.ts";

const folder = new URL("../docs/policies/", import.meta.url);
const page = (name: string) => readFileSync(new URL(`${name}.md`, folder), "utf8");

const HEADINGS = ["What it does", "When to use", "When not", "Inputs", "Options", "Results"];

describe("docs/policies", () => {
  it("has a page for each policy and no other", () => {
    const pages = readdirSync(folder).filter((file) => file !== "README.md" && file !== "peers.md");
    expect(pages.toSorted()).toEqual(policyDefinitions.map(({ name }) => `${name}.md`).toSorted());
  });

  it("lists all policies with their summaries, in the order of the table", () => {
    const rows = [...page("README").matchAll(/^\| \[(\w+)\]\((\w+)\.md\) \| (.*) \|$/gm)].map((row) => row.slice(1));
    expect(rows).toEqual(policyDefinitions.map(({ name, summary }) => [name, name, summary]));
  });

  it("compares all of them", () => {
    const rows = [...page("README").matchAll(/^\| (\w+) \| \d/gm)].map((row) => row[1]);
    expect(rows).toEqual(policyDefinitions.map(({ name }) => name));
  });

  describe.each(policyDefinitions.map((definition) => [definition.name, definition] as const))(
    "%s.md",
    (name, { options }) => {
      it("has the headings of every policy's page", () => {
        expect(page(name)).toMatch(new RegExp(`^# ${name}\n`));
        expect([...page(name).matchAll(/^## (.*)$/gm)].map((heading) => heading[1])).toEqual(HEADINGS);
      });

      it("lists exactly the options that exist, with default, bounds and meaning", () => {
        const [, section = ""] = page(name).split("## Options\n");
        const [text = ""] = section.split("\n## ");
        const rows = [...text.matchAll(/^\| `.*$/gm)].map(([row]) => row);
        expect(rows).toEqual(optionRows(options));
        if (rows.length === 0) expect(text.trim()).toBe("None.");
      });
    },
  );
});

interface OptionSchema {
  readonly type?: string;
  /** Undefined: the option can be left out. */
  readonly default?: unknown;
  readonly description: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
}

function optionRows(options: z.ZodType): string[] {
  const schema = z.toJSONSchema(options) as { readonly properties?: Record<string, OptionSchema> };
  return Object.entries(schema.properties ?? {}).map(([name, option]) => {
    const byDefault = option.default === undefined ? "none" : `\`${option.default}\``;
    return `| \`${name}\` | ${byDefault} | ${allowedBy(option)} | ${option.description} |`;
  });
}

function allowedBy({ type, enum: names, minimum, maximum }: OptionSchema): string {
  const values = type === "boolean" ? ["true", "false"] : names;
  return values?.map((value) => `\`${value}\``).join(", ") ?? `${minimum} to ${maximum}`;
}
