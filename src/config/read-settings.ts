import type { z } from "zod";
import { ENVIRONMENT_PREFIX, type Setting, schemasAt, settingsOf, valuesOf } from "./declaration.ts";
import { expectation } from "./expectation.ts";
import type { Environment } from "./interpolation.ts";
import { issueProblems } from "./issue-problems.ts";
import { formatPath } from "./path.ts";
import type { Checked, Problem } from "./problem.ts";
import { textValue } from "./text-value.ts";
import { isMapping, writtenIn } from "./written.ts";
import { readYaml, type SourceFile } from "./yaml-file.ts";

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

/** In the order of the file, which is the order in which they will be mended; what has no line comes after, as it was. */
function byPlace(a: Problem, b: Problem): number {
  const [lineA, columnA] = lineAndColumn(a);
  const [lineB, columnB] = lineAndColumn(b);
  return lineA - lineB || columnA - columnB;
}

function lineAndColumn({ source = "" }: Problem): readonly [number, number] {
  const [, line, column] = /:(\d+):(\d+)$/.exec(source) ?? [];
  return [Number(line ?? Number.MAX_SAFE_INTEGER), Number(column ?? 0)];
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
  const given = setting.form === "list" ? text.split(setting.separator).map((part) => part.trim()) : text;
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
