import { z } from "zod";
import { alternatives, defaultOf, isSecret, schemasAt } from "./declaration.ts";
import { formatPath, type Path } from "./path.ts";
import { HIDDEN } from "./secret.ts";
import { shownValue } from "./shown-value.ts";
import type { YamlFile } from "./yaml-file.ts";

/** What was written, for saying what was found and where. */
export interface Written {
  /** `path`, or its beginning up to a value that has no parts: an endpoint may be a mapping with a URL, or the URL alone. */
  within(path: Path): Path;
  /** The value at `path` in words; undefined: there is none. */
  show(path: Path): string | undefined;
  /** Undefined: nothing was written there or around it. */
  sourceOf(path: Path, part: "key" | "value"): string | undefined;
  /** Keys the schema knows in the mapping at `path`. */
  keysAt(path: Path): readonly string[];
}

/** A reading of settings, before it is known to be right. */
export interface Reading {
  readonly schema: z.ZodType;
  readonly value: unknown;
  readonly yaml: YamlFile | undefined;
  /** Flag or variable that settings were given by, by path. */
  readonly overrides: ReadonlyMap<string, string>;
}

/** What a reading was made from. */
export function writtenIn({ schema, value, yaml, overrides }: Reading): Written {
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
      const variables = overriddenBy(path) === undefined ? yaml?.variablesAt(path) : undefined;
      return variables === undefined ? shown : `the value of ${variables}`;
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

/** Whether a value is a mapping, as YAML calls it. */
export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
