import { z } from "zod";
import type { SessionKeySource } from "./config.ts";

const HEADER = /^header:[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
const BODY = /^body:[^.\s]+(\.[^.\s]+)*$/;

/** Session keys appear in explanations, so what carries credentials cannot be one. */
const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set([
  "header:authorization",
  "header:cookie",
  "header:proxy-authorization",
  "header:x-api-key",
]);

const expected = "header:NAME or body:PATH, such as header:x-session-id or body:metadata.user_id";

/** Where a session key may be; header names are read in any case. */
export const sessionKeySource: z.ZodType<SessionKeySource, string> = z
  .string({ error: expected })
  .transform((text, context) => {
    const source = HEADER.test(text) ? text.toLowerCase() : text;
    if (!isSource(source)) context.addIssue({ code: "custom", message: expected });
    else if (!CREDENTIAL_HEADERS.has(source)) return source;
    else context.addIssue({ code: "custom", message: "a header that carries no credentials" });
    return z.NEVER;
  })
  .meta({ value: "source" });

function isSource(text: string): text is SessionKeySource {
  return HEADER.test(text) || BODY.test(text);
}
