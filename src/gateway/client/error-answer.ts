import type { Dialect } from "../routes.ts";
import { ERRORS, type ErrorCode, type ErrorDetails } from "./errors.ts";

/** A whole answer, ready to be written. */
export interface ErrorAnswer {
  readonly status: number;
  /** With content-type and content-length. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Which refusal an answer is, in every dialect alike: Anthropic's error objects have no place for a code. */
const REASON_HEADER = "x-evenkeel-reason";

/** @param dialect undefined: the path is none of the balanced ones, so the OpenAI shape is used. */
export function errorBody(dialect: Dialect | undefined, code: ErrorCode, details: ErrorDetails = {}): ErrorAnswer {
  const kind = ERRORS[code];
  const { limits = [] } = details;
  const body = Buffer.from(JSON.stringify(errorObject(dialect, code, details)));
  const headers: Record<string, string> = {
    "content-type": "application/json",
    "content-length": String(body.length),
    [REASON_HEADER]: code,
  };
  if (!kind.isWorthRetrying) headers["x-should-retry"] = "false";
  if (details.retryAfterMs !== undefined) headers["retry-after"] = retryAfter(details.retryAfterMs);
  for (let i = 0; i + 1 < limits.length; i += 2) headers[limits[i] as string] = limits[i + 1] as string;
  if (details.allowedMethods !== undefined) headers.allow = details.allowedMethods.join(", ");
  if (kind.status === 401) headers["www-authenticate"] = "Bearer";
  if (kind.closesConnection) headers.connection = "close";
  return { status: kind.status, headers, body };
}

/**
 * The event that tells a client in a started stream that no more will come. Send it between events and
 * then cut the connection: an end mark after it would look like success.
 */
export function errorEvent(dialect: Dialect, code: ErrorCode, details: ErrorDetails = {}): Buffer {
  if (dialect === "responses") {
    const event = { type: "error", code, message: ERRORS[code].message(details), param: null, sequence_number: 0 };
    return Buffer.from(`event: error\ndata: ${JSON.stringify(event)}\n\n`);
  }
  const name = dialect === "messages" ? "event: error\n" : "";
  return Buffer.from(`${name}data: ${JSON.stringify(errorObject(dialect, code, details))}\n\n`);
}

function errorObject(dialect: Dialect | undefined, code: ErrorCode, details: ErrorDetails): object {
  const kind = ERRORS[code];
  const message = kind.message(details);
  return dialect === "messages"
    ? { type: "error", error: { type: kind.anthropicType, message }, request_id: details.requestId ?? null }
    : { error: { message, type: kind.openaiType, param: null, code } };
}

/** Whole seconds from 1 to 60: the OpenAI SDK ignores more, and the Anthropic SDK would sleep for as long as it is told. */
function retryAfter(ms: number): string {
  return String(Math.min(60, Math.max(1, Math.ceil(ms / 1000))));
}
