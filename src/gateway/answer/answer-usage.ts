import { endOfValue, skipSpace } from "../request/json-bytes.ts";
import type { ReadDialect } from "../routes.ts";
import { readUsage, type Usage } from "./usage.ts";

/**
 * Finds the usage in an answer that was not streamed. It searches the bytes instead of parsing them: an answer with
 * embeddings takes tens of milliseconds to parse, for three numbers at its end.
 * @param answer The whole answer or, of a large one, its end or its beginning.
 * @returns undefined: the engine sent none, or not in these bytes.
 */
export function readAnswerUsage(dialect: ReadDialect, answer: Buffer): Usage | undefined {
  // Engines write it last or, llama.cpp, just before the rest; the last one found is the answer's own.
  let at = answer.lastIndexOf(USAGE_KEY);
  for (let tries = 0; at !== -1 && tries < MAX_TRIES; tries++) {
    const usage = readUsage(dialect, objectAfter(answer, at + USAGE_KEY.length));
    if (usage !== undefined) return usage;
    at = at === 0 ? -1 : answer.lastIndexOf(USAGE_KEY, at - 1);
  }
  return undefined;
}

const USAGE_KEY = Buffer.from('"usage"');
/** The name may turn up as a word in what was generated as well, but hardly more often than this. */
const MAX_TRIES = 16;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;

/** The object that is the value of a key ending at `keyEnd`; undefined: it is none. */
function objectAfter(answer: Buffer, keyEnd: number): unknown {
  const colon = skipSpace(answer, keyEnd);
  const from = skipSpace(answer, colon + 1);
  if (answer[colon] !== COLON || answer[from] !== OPEN_BRACE) return undefined;
  try {
    return JSON.parse(answer.toString("utf8", from, endOfValue(answer, from)));
  } catch {
    return undefined;
  }
}
