import type { LineCounter, YAMLError } from "yaml";
import type { Problem } from "./problem.ts";

/**
 * What is wrong with a text as YAML, one problem a line: what follows on the same line comes of the first.
 * Messages of the parser that quote the text are not passed on, for the text may hold a secret.
 */
export function yamlProblems(errors: readonly YAMLError[], lines: LineCounter, file: string): Problem[] {
  const byLine = new Map<number, Problem>();
  for (const { code, message, pos } of errors) {
    const { line, col } = lines.linePos(pos[0]);
    if (byLine.has(line)) continue;
    const [found, expected] = PHRASES[code] ?? [`not YAML: ${message}`, "valid YAML"];
    byLine.set(line, { path: "", source: `${file}:${line}:${col}`, found, expected });
  }
  return [...byLine.values()];
}

const COLON: readonly [string, string] = [
  "a key inside a value",
  "the key on a line of its own, or quotes around text with a colon",
];

const PHRASES: { readonly [Code in YAMLError["code"]]?: readonly [string, string] } = {
  BLOCK_AS_IMPLICIT_KEY: COLON,
  MULTILINE_IMPLICIT_KEY: COLON,
  DUPLICATE_KEY: ["a key that was there before", "each key once"],
  TAB_AS_INDENT: ["a tab", "spaces as indentation"],
  MULTIPLE_DOCS: ["a second document", "one document in a file"],
  TAG_RESOLVE_FAILED: ["a tag", "a plain value, or quotes around text that begins with !"],
  MISSING_CHAR: ["something unfinished", `a closing quote or bracket, and quotes around \${NAME} inside brackets`],
  UNEXPECTED_TOKEN: ["something out of place", "YAML, with quotes around text that begins with [ { ] } & or *"],
};
