import { skipSpace } from "../request/json-bytes.ts";
import type { ReadDialect } from "../routes.ts";

/** vLLM ends what it gives up, at SIGTERM for one, with one of these finish reasons and then as if all were well. */
const BROKEN_OFF = ["abort", "error"] as const;

/** Whether a finish reason says that the engine gave the answer up. */
export function isBrokenOff(reason: unknown): reason is string {
  return BROKEN_OFF.some((each) => each === reason);
}

/**
 * Finds such a reason in an answer that was not streamed, in its bytes as usage is. What was generated cannot pass for
 * one: inside a string the quotes of a key come with a backslash.
 * @returns undefined: the answer has none.
 */
export function brokenOffIn(dialect: ReadDialect, answer: Buffer): string | undefined {
  if (dialect !== "chat" && dialect !== "completions") return undefined;
  let at = answer.indexOf(REASON_KEY);
  while (at !== -1) {
    const colon = skipSpace(answer, at + REASON_KEY.length);
    const from = skipSpace(answer, colon + 1);
    const found = BROKEN_OFF.find(
      (reason) => answer.toString("latin1", from, from + reason.length + 2) === `"${reason}"`,
    );
    if (answer[colon] === COLON && found !== undefined) return found;
    at = answer.indexOf(REASON_KEY, from);
  }
  return undefined;
}

const REASON_KEY = Buffer.from('"finish_reason"');
const COLON = 0x3a;
