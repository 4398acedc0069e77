import type { z } from "zod";

/**
 * Says what a schema wanted, as a phrase that follows "expected". Given to zod as its error map, so
 * that `message` of every issue is such a phrase, whether it comes from here or from a schema's own `error`.
 */
export function expectation(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return TYPE_NAMES[issue.expected] ?? issue.expected;
    case "invalid_value":
      return oneOf(issue.values);
    case "too_small":
      return bounded(issue.origin, Number(issue.minimum), issue.inclusive === false ? "more than" : "at least");
    case "too_big":
      return bounded(issue.origin, Number(issue.maximum), issue.inclusive === false ? "less than" : "at most");
    case "not_multiple_of":
      return `a multiple of ${issue.divisor}`;
    case "invalid_format":
      return issue.pattern === undefined ? `a valid ${issue.format}` : `text of the form ${issue.pattern}`;
    case "invalid_union":
      return expectedByUnion(issue);
    default:
      return "another value";
  }
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  object: "a mapping",
  record: "a mapping",
  array: "a list",
};

function bounded(origin: string, bound: number, relation: string): string {
  if (origin === "string") return bound === 1 ? "text that is not empty" : `text of ${relation} ${bound} characters`;
  if (origin === "array") return bound === 1 ? "a list of at least one" : `a list of ${relation} ${bound}`;
  return `a number of ${relation} ${bound}`;
}

function expectedByUnion(issue: z.core.$ZodRawIssue<z.core.$ZodIssueInvalidUnion>): string {
  if (issue.inclusive === false) return "one form only";
  if (issue.discriminator !== undefined) return oneOf(issue.options ?? []);
  return [...new Set(issue.errors.flatMap((branch) => branch.map(({ message }) => message)))].join(", or ");
}

function oneOf(values: readonly unknown[]): string {
  const names = values.map(String);
  return names.length === 1 ? `${names[0]}` : `one of ${names.join(", ")}`;
}
