import { z } from "zod";
import { alternatives } from "./declaration.ts";

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

/**
 * What text from a flag, a variable or an interpolation means where `schemas` are expected: a number or a
 * truth value where only such will do, the text itself elsewhere and wherever it is neither.
 */
export function textValue(schemas: readonly z.ZodType[], text: string): string | number | boolean {
  const cores = schemas.flatMap(alternatives);
  if (cores.some((core) => core instanceof z.ZodString || core instanceof z.ZodEnum)) return text;
  if (cores.some((core) => core instanceof z.ZodNumber) && NUMBER.test(text)) return Number(text);
  if (cores.some((core) => core instanceof z.ZodBoolean) && (text === "true" || text === "false"))
    return text === "true";
  return text;
}
