import { z } from "zod";
import type { PolicyDefinition } from "../core/index.ts";
import { configSchema } from "./schema.ts";

/** The JSON Schema of a configuration file, for editors. */
export function configJsonSchema(policies: readonly PolicyDefinition[]): z.core.JSONSchema.JSONSchema {
  const { $schema, ...schema } = z.toJSONSchema(configSchema(policies), { io: "input", override: forEditors });
  return {
    ...($schema === undefined ? {} : { $schema }),
    title: "evenkeel configuration",
    ...schema,
    $defs: { variable: { type: "string", pattern: "\\$\\{", description: "Filled in from the environment." } },
  };
}

/** Metadata that only flags and help need. */
const OWN_METADATA = ["value", "flag", "env", "separator", "secret"];

/** Drops our own metadata, and lets a variable stand wherever text of a certain form, or no text at all, is asked for. */
function forEditors({ jsonSchema }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  for (const key of OWN_METADATA) delete jsonSchema[key];
  if (!isNarrowScalar(jsonSchema)) return;
  const { description, default: initial, ...narrow } = jsonSchema;
  for (const key of Object.keys(narrow)) delete jsonSchema[key];
  jsonSchema.anyOf = [narrow, { $ref: "#/$defs/variable" }];
}

function isNarrowScalar({ type, pattern, enum: values }: z.core.JSONSchema.BaseSchema): boolean {
  if (type === "string") return pattern !== undefined || values !== undefined;
  return type === "number" || type === "integer" || type === "boolean";
}
