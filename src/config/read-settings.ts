import { z } from "zod";
import {
  alternatives,
  ENVIRONMENT_PREFIX,
  isSecret,
  type Setting,
  schemasAt,
  settingsOf,
  valuesOf,
} from "./declaration.ts";
import { expectation } from "./expectation.ts";
import type { Environment } from "./interpolation.ts";
import { issueProblems, type Written } from "./issue-problems.ts";
import { formatPath, type Path } from "./path.ts";
import type { Checked, Problem } from "./problem.ts";
import { HIDDEN } from "./secret.ts";
import { shownValue } from "./shown-value.ts";
import { textValue } from "./text-value.ts";
import { readYaml, type SourceFile, type YamlFile } from "./yaml-file.ts";

/** Where settings come from. A flag wins over a variable, a variable over the file, the file over the default. */
export interface Sources {
  readonly file?: SourceFile | undefined;
  readonly environment?: Environment | undefined;
  readonly flags?: Flags | undefined;
}

/** Flags as they were given, by name with its dashes: text, the texts of a repeated flag, or true for a switch. */
export type Flags = Readonly<Record<string, string | readonly string[] | boolean | undefined>>;

/** Reads settings and checks them by their schema. @param prefix Start of the environment variables' names. */
export function readSettings<Value>(
  schema: z.ZodType<Value>,
  { file, environment = {}, flags = {} }: Sources,
  prefix: string = ENVIRONMENT_PREFIX,
): Checked<Value> {
  const yaml = file && readYaml(file, environment, (path, text) => textValue(schemasAt(schema, path), text));
  const problems = [...(yaml?.problems ?? [])];
  if (problems.length > 0 && yaml?.value === undefined) return { ok: false, problems };

  const value = yaml?.value ?? {};
  const overrides = new Map<string, string>();
  for (const setting of valuesOf(settingsOf(schema, prefix))) {
    const given = givenOutside(setting, environment, flags);
    if (given === undefined || !assign(value, setting.path, given.value)) continue;
    overrides.set(formatPath(setting.path), given.source);
  }

  const parsed = schema.safeParse(value, { error: expectation });
  if (!parsed.success) {
    const known = new Set(problems.map(({ path }) => path));
    const found = issueProblems(parsed.error.issues, writtenIn({ schema, value, yaml, overrides }));
    problems.push(...found.filter(({ path }) => !known.has(path)));
    problems.sort(byPlace);
  }
  return parsed.success && problems.length === 0 ? { ok: true, value: parsed.data } : { ok: false, problems };
}

/** In the order of the file, which is the order in which they will be mended; others keep theirs. */
function byPlace(a: Problem, b: Problem): number {
  return (a.source ?? "").localeCompare(b.source ?? "", "en", { numeric: true });
}

interface Given {
  readonly value: unknown;
  readonly source: string;
}

/** An empty variable is no variable: that is how compose files and shells pass on what was not set. */
function givenOutside(setting: Setting, environment: Environment, flags: Flags): Given | undefined {
  if (setting.form === "structure") return undefined;
  const flag = flags[setting.flag];
  if (flag !== undefined) return { value: meaningOf(setting, flag), source: setting.flag };
  const text = environment[setting.environment];
  if (text === undefined || text === "") return undefined;
  const given = setting.form === "list" ? text.split(",").map((part) => part.trim()) : text;
  return { value: meaningOf(setting, given), source: setting.environment };
}

function meaningOf({ schema, form }: Setting, given: string | readonly string[] | boolean): unknown {
  if (typeof given === "boolean") return given;
  if (typeof given === "string") return form === "list" ? [given] : textValue([schema], given);
  return given.map((text) => textValue(schemasAt(schema, [0]), text));
}

/** False: what surrounds the setting is no mapping, which is a problem of its own. */
function assign(target: unknown, path: readonly string[], value: unknown): boolean {
  const [key, ...rest] = path;
  if (key === undefined || !isMapping(target)) return false;
  if (rest.length === 0) {
    target[key] = value;
    return true;
  }
  target[key] ??= {};
  return assign(target[key], rest, value);
}

interface Reading {
  readonly schema: z.ZodType;
  readonly value: unknown;
  readonly yaml: YamlFile | undefined;
  /** Flag or variable that settings were given by, by path. */
  readonly overrides: ReadonlyMap<string, string>;
}

function writtenIn({ schema, value, yaml, overrides }: Reading): Written {
  const overriddenBy = (path: Path): string | undefined =>
    path.map((_, index) => overrides.get(formatPath(path.slice(0, index + 1)))).find((source) => source !== undefined);
  return {
    within(path) {
      const end = path.findIndex((_, index) => typeof valueAt(value, path.slice(0, index)) !== "object");
      return end === -1 ? path : path.slice(0, Math.max(1, end));
    },
    show(path) {
      const shown = shownValue(valueAt(value, path)) ?? shownDefault(schemasAt(schema, path));
      if (shown === undefined) return undefined;
      if (path.some((_, index) => schemasAt(schema, path.slice(0, index + 1)).some(isSecret))) return HIDDEN;
      const template = overriddenBy(path) === undefined ? yaml?.templateAt(path) : undefined;
      return template === undefined ? shown : `the value of ${template}`;
    },
    sourceOf: (path, part) => overriddenBy(path) ?? yaml?.placeOf(path, part),
    keysAt: (path) => keysOf(schemasAt(schema, path), valueAt(value, path)),
  };
}

function shownDefault([schema]: readonly z.ZodType[]): string | undefined {
  const initial = schema && defaultOf(schema);
  return initial === undefined ? undefined : `${initial} by default`;
}

/** Keys of the mappings that may stand here, or of the one that the value's own keys tell apart. */
function keysOf(schemas: readonly z.ZodType[], value: unknown): string[] {
  const mappings = schemas.flatMap(alternatives).filter((core) => core instanceof z.ZodObject);
  const meant = mappings.filter((mapping) => isMapping(value) && hasLiteralsOf(mapping, value));
  return [...new Set((meant.length > 0 ? meant : mappings).flatMap((mapping) => Object.keys(mapping.shape)))];
}

function hasLiteralsOf(mapping: z.ZodObject, value: Record<string, unknown>): boolean {
  const literals = Object.entries(mapping.shape).filter(([, field]) => field instanceof z.ZodLiteral);
  return literals.every(([key, field]) => (field as z.ZodType).safeParse(value[key]).success);
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((within, key) => {
    if (Array.isArray(within)) return within[Number(key)];
    return isMapping(within) ? within[String(key)] : undefined;
  }, value);
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
