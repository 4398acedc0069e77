import type { PolicyDefinition } from "../core/index.ts";
import { alternatives, type Setting, schemasAt, settingsOf } from "./declaration.ts";
import type { Path } from "./path.ts";
import { configSchema } from "./schema.ts";

/** The tables of the reference page, in Markdown. */
export function configReference(policies: readonly PolicyDefinition[]): string {
  const schema = configSchema(policies);
  const top = settingsOf(schema);
  const sections = sectionsOf(top);
  const entries = (path: Path): Setting[] =>
    schemasAt(schema, path)
      .flatMap(alternatives)
      .flatMap((each) => settingsOf(each));
  const tables = [
    section("Top level", "", valueTable(top)),
    ...sections.map(({ path, description, inner }) => section(code(path.join(".")), description, valueTable(inner))),
    section("An entry of `endpoints`", "A URL alone, or a mapping:", fileTable(entries(["endpoints", 0]))),
    section("An entry of `discovery`", "Either `file` or `dns`:", fileTable(entries(["discovery", 0]))),
    section("An entry of `pools`", "", fileTable(entries(["pools", 0]))),
    section("An entry of `keys`", "An entry of `adminKeys` has the first two:", fileTable(entries(["keys", 0]))),
    section("Policies", POLICY_FORMS, policyTable(policies)),
  ];
  return tables.join("\n");
}

/** Sections, each followed by those inside it. */
function sectionsOf(settings: readonly Setting[]): Setting[] {
  return settings.flatMap((setting) => (setting.inner.length === 0 ? [] : [setting, ...sectionsOf(setting.inner)]));
}

function valueTable(settings: readonly Setting[]): string {
  return flagTable(settings.filter(({ inner }) => inner.length === 0));
}

function section(title: string, description: string, table: string): string {
  return [`### ${title}`, ...(description === "" ? [] : [description]), table].join("\n\n");
}

const POLICY_FORMS = "A name alone, or a mapping of `name` and options; each page lists the options of its policy.";

function policyTable(policies: readonly PolicyDefinition[]): string {
  const link = (name: string): string => `[${code(name)}](policies/${name}.md)`;
  return table(
    ["Policy", ""],
    policies.map(({ name, summary }) => [link(name), summary]),
  );
}

function flagTable(settings: readonly Setting[]): string {
  return table(
    ["Setting", "Value", "Default", "Flag and variable", ""],
    settings.map((setting) => [...columns(setting), outside(setting), setting.description]),
  );
}

function fileTable(settings: readonly Setting[]): string {
  return table(
    ["Setting", "Value", "Default", ""],
    settings.map((setting) => [...columns(setting), setting.description]),
  );
}

function columns({ path, value, form, initial, isRequired }: Setting): string[] {
  const kind = form === "list" ? `list of ${code(value)}` : code(value);
  return [code(path.at(-1) ?? ""), kind, initial === undefined ? (isRequired ? "required" : "") : code(initial)];
}

function outside({ form, flag, environment }: Setting): string {
  return form === "structure" ? "file only" : `${code(flag)}<br>${code(environment)}`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [row(head), row(head.map(() => "---")), ...rows.map(row), ""].join("\n");
}

function row(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

function code(text: string): string {
  return `\`${text}\``;
}
