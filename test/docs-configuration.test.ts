import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { configJsonSchema, configReference, readConfig } from "../src/config/index.ts";
import { policyDefinitions } from "../src/core/index.ts";

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");
const page = read("docs/configuration.md");
const blocks = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = ""]) => text);
const examples = readdirSync(new URL("../examples/", import.meta.url)).filter((name) => name.endsWith(".yaml"));
const files = [
  ...blocks.map((text, index) => [`block ${index + 1} of docs/configuration.md`, text] as const),
  ...examples.map((name) => [`examples/${name}`, read(`examples/${name}`)] as const),
];

/** A value for each variable that a text names. */
function environmentOf(text: string): Record<string, string> {
  return Object.fromEntries([...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = ""]) => [name, "value"]));
}

// Both files are written anew by `npm run schema`.
describe("what is made from the schema", () => {
  it("is the published JSON Schema", async () => {
    const schema = `${JSON.stringify(configJsonSchema(policyDefinitions), null, 2)}\n`;
    await expect(schema).toMatchFileSnapshot("../schema/evenkeel.schema.json");
  });

  it("is the reference in docs/configuration.md", async () => {
    const generated = /(?<=<!-- Made from.*-->\n)[\s\S]*(?=\n<!-- End of the generated part)/;
    expect(page).toMatch(generated);
    const written = page.replace(generated, () => `\n${configReference(policyDefinitions)}`);
    await expect(written).toMatchFileSnapshot("../docs/configuration.md");
  });
});

describe.each(files)("%s", (_name, text) => {
  it("is a configuration without problems", () => {
    const checked = readConfig({ file: { name: "it", text }, environment: environmentOf(text) });
    expect(checked.ok ? [] : checked.problems).toEqual([]);
  });

  it("fits the JSON Schema, variables as they are", () => {
    const schema = z.fromJSONSchema(configJsonSchema(policyDefinitions));
    expect(schema.safeParse(parse(text)).error?.issues).toBeUndefined();
  });
});

describe("the JSON Schema", () => {
  const schema = z.fromJSONSchema(configJsonSchema(policyDefinitions));

  it.each([
    ["an unknown setting", { endpoints: ["a:1"], polcy: "random" }],
    ["an unknown policy", { endpoints: ["a:1"], policy: "best" }],
    ["an unknown option of a policy", { endpoints: ["a:1"], policy: { name: "token_aware", horizon: 1 } }],
    ["a duration without unit", { endpoints: ["a:1"], timeouts: { idle: "60" } }],
    ["a negative weight", { endpoints: [{ url: "a:1", weight: -1 }] }],
  ])("refuses %s", (_what, value) => expect(schema.safeParse(value).success).toBe(false));
});
