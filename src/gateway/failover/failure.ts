import type { StreamError } from "../answer/stream-meter.ts";

/** Why an attempt failed while nothing of an answer had reached the client: another endpoint may do better. */
export type Failure =
  /** No connection was found, so nothing was sent. */
  | "unconnected"
  /** The endpoint had the request, and the connection broke or the answer ended before it began. */
  | "lost"
  /** The endpoint had the request and was too slow. */
  | "slow"
  /** It is overloaded: no fault of the endpoint's. */
  | "busy"
  /** It failed by itself. */
  | "failed";

/** What an answer that is no success says of its endpoint: `client`: nothing. */
export type Blame = "busy" | "failed" | "client";

/**
 * Of a status. 500, 502 and 504 are what broken engines answer. 501 says that the engine cannot do such a thing, 429
 * and 503 that it is busy, everything else below 500 that the request is at fault.
 */
export function blameOfStatus(status: number): Blame {
  if (status === 429 || status === 503) return "busy";
  return status === 500 || status === 502 || status === 504 ? "failed" : "client";
}

/**
 * Of an error that was told inside an answer. Its code is a status for most engines and a word for some; where there is
 * neither, its text can say that the engine is overloaded, and otherwise nothing is known.
 * @returns undefined: it does not say.
 */
export function blameOfError({ code, message }: StreamError): Blame | undefined {
  if (code === undefined) return message !== undefined && OVERLOAD_TEXT.test(message) ? "busy" : undefined;
  const status = Number(code);
  if (Number.isInteger(status) && status >= 400 && status < 600) return blameOfStatus(status);
  return WORDS.find(([pattern]) => pattern.test(String(code)))?.[1];
}

/** Codes and types in words, of engines and of the two APIs, the first match counts. */
const WORDS: readonly (readonly [RegExp, Blame])[] = [
  [/overload|rate.?limit|unavailable|too.?many|queue|busy/i, "busy"],
  [
    /invalid|not.?found|authenticat|permission|forbidden|unsupported|validation|bad.?request|exceed|too.?large/i,
    "client",
  ],
  [/internal|server|engine|upstream|api.?error|timeout|abort|^error$/i, "failed"],
];

const OVERLOAD_TEXT = /overloaded|queue is full|too many requests|at capacity|server is busy/i;

/** How long an endpoint asks to be left alone, in ms; undefined: it does not, or not in a way that can be read. */
export function retryAfterOf(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (SECONDS.test(value)) return Number(value) * 1000;
  // A date is on the wall clock, here as there; how long that is from now does not depend on it any more.
  const untilMs = DATE.test(value) ? Date.parse(value) - Date.now() : Number.NaN;
  return Number.isNaN(untilMs) ? undefined : Math.max(0, untilMs);
}

/** As every HTTP date ends (RFC 9110, 5.6.7); `Date.parse` takes much more for one. */
const DATE = / GMT$/;
const SECONDS = /^\d{1,9}(\.\d+)?$/;

/** What went wrong in a connection, by its code: messages of connection errors carry addresses. */
export function causeOf(error: Error): string {
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}
