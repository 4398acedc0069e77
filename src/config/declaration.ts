import { z } from "zod";
import type { Path } from "./path.ts";

/** One setting as its schema declares it: what flags, environment variables, help and documentation are made from. */
export interface Setting {
  /** Keys that lead to it, without the root: `["timeouts", "idle"]`. */
  readonly path: readonly string[];
  /** What it is for, in a sentence; names are in backticks. */
  readonly description: string;
  /** What is written there, as a placeholder: `duration`, `host:port`, `debug|info`. */
  readonly value: string;
  /** The words to choose from; empty: it is not a choice among words. */
  readonly choices: readonly string[];
  /** The default as it would be written; undefined: there is none. */
  readonly initial: string | undefined;
  /** `structure`: needs more than text, so only a file can hold it. */
  readonly form: "text" | "list" | "switch" | "structure";
  /** As typed: `--timeouts-idle`. */
  readonly flag: string;
  /** `EVENKEEL_TIMEOUTS_IDLE`. */
  readonly environment: string;
  /** What stands between the entries of a list in a variable. */
  readonly separator: string;
  /** Settings inside it; empty: it is a value. */
  readonly inner: readonly Setting[];
  readonly isRequired: boolean;
  readonly schema: z.ZodType;
}

/** What starts the names of environment variables, unless the schema at hand has a start of its own. */
export const ENVIRONMENT_PREFIX = "EVENKEEL";

/** The settings an object schema declares, in its order; sections have theirs inside. */
export function settingsOf(
  schema: z.ZodType,
  prefix: string = ENVIRONMENT_PREFIX,
  parent: readonly string[] = [],
): Setting[] {
  const object = bare(schema);
  if (!(object instanceof z.ZodObject)) return [];
  return Object.entries<z.ZodType>(object.shape).map(([key, field]) => settingOf(field, [...parent, key], prefix));
}

/** The settings that are values, those of sections included. */
export function valuesOf(settings: readonly Setting[]): Setting[] {
  return settings.flatMap((setting) => (setting.inner.length > 0 ? valuesOf(setting.inner) : [setting]));
}

/** The schemas that a value at `path` may have to fit; several under a union, none for a path that is not declared. */
export function schemasAt(schema: z.ZodType, path: Path): z.ZodType[] {
  return path.reduce<z.ZodType[]>((schemas, key) => schemas.flatMap((each) => step(each, key)), [schema]);
}

/** Alternatives of a schema without the layers of defaults and transforms around them. */
export function alternatives(schema: z.ZodType): z.ZodType[] {
  const core = bare(schema);
  return core instanceof z.ZodUnion ? (core.options as z.ZodType[]).flatMap(alternatives) : [core];
}

/** Whether a schema is marked as one whose values must not be seen. */
export function isSecret(schema: z.ZodType): boolean {
  return layers(schema).some((layer) => layer.meta()?.secret === true);
}

/** The default of a value as it would be written; undefined: there is none, or it has parts. */
export function defaultOf(field: z.ZodType): string | undefined {
  for (const layer of layers(field)) {
    if (!(layer instanceof z.ZodDefault || layer instanceof z.ZodPrefault)) continue;
    const value: unknown = layer.def.defaultValue;
    return typeof value === "object" ? undefined : String(value);
  }
  return undefined;
}

function settingOf(field: z.ZodType, path: readonly string[], prefix: string): Setting {
  const words = path.flatMap((key) => kebabCase(key).split("-"));
  const form = formOf(field);
  return {
    path,
    description: metaOf(field, "description") ?? "",
    value: placeholder(field),
    choices: alternatives(field).flatMap((core) => (core instanceof z.ZodEnum ? core.options.map(String) : [])),
    initial: defaultOf(field),
    form,
    flag: metaOf(field, "flag") ?? `--${words.join("-")}`,
    environment: metaOf(field, "env") ?? [prefix, ...words].join("_").toUpperCase(),
    separator: metaOf(field, "separator") ?? ",",
    inner: settingsOf(field, prefix, path),
    isRequired: !field.safeParse(undefined).success && defaultOf(field) === undefined,
    schema: field,
  };
}

function formOf(field: z.ZodType): Setting["form"] {
  const cores = alternatives(field);
  if (cores.some((core) => core instanceof z.ZodArray && formOf(core.element as z.ZodType) === "text")) return "list";
  if (cores.some((core) => core instanceof z.ZodBoolean)) return "switch";
  return cores.some(isText) ? "text" : "structure";
}

function isText(core: z.ZodType): boolean {
  return !(core instanceof z.ZodObject || core instanceof z.ZodArray || core instanceof z.ZodRecord);
}

function placeholder(field: z.ZodType): string {
  const named = metaOf(field, "value");
  if (named !== undefined) return named;
  const [core] = alternatives(field);
  if (core instanceof z.ZodArray) return placeholder(core.element as z.ZodType);
  if (core instanceof z.ZodEnum) return core.options.join("|");
  if (core instanceof z.ZodNumber) return "number";
  if (core instanceof z.ZodBoolean) return "true|false";
  if (core instanceof z.ZodObject || core instanceof z.ZodRecord) return "mapping";
  return metaOf(core ?? field, "value") ?? "text";
}

/** The outermost layer that says something about `key` wins. */
function metaOf(schema: z.ZodType, key: "description" | "flag" | "env" | "separator" | "value"): string | undefined {
  for (const layer of layers(schema)) {
    const value = layer.meta()?.[key];
    if (typeof value === "string") return value;
  }
  return undefined;
}

/** A schema and what it is wrapped around, outermost first. */
function layers(schema: z.ZodType): z.ZodType[] {
  const within = unwrap(schema);
  return within === undefined ? [schema] : [schema, ...layers(within)];
}

function bare(schema: z.ZodType): z.ZodType {
  return layers(schema).at(-1) ?? schema;
}

function unwrap(schema: z.ZodType): z.ZodType | undefined {
  if (schema instanceof z.ZodPipe) return schema.in as z.ZodType;
  const isWrapper =
    schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault;
  return isWrapper ? (schema.unwrap() as z.ZodType) : undefined;
}

function step(schema: z.ZodType, key: string | number): z.ZodType[] {
  return alternatives(schema).flatMap((core) => {
    if (core instanceof z.ZodObject) return Object.hasOwn(core.shape, key) ? [core.shape[key]] : [];
    if (core instanceof z.ZodArray) return [core.element as z.ZodType];
    return core instanceof z.ZodRecord ? [core.valueType as z.ZodType] : [];
  });
}

function kebabCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
