import { isJsonObject } from "../request/json-object.ts";
import type { SseEvent } from "./sse-reader.ts";
import type { Usage } from "./usage.ts";

/** An error that the engine sent inside a stream. */
export interface StreamError {
  /** Undefined: it gave no text. */
  readonly message: string | undefined;
  /** As the engine wrote it: mostly a status number, else a word, from `code` or, failing that, `type`. */
  readonly code: string | number | undefined;
}

/** What a stream has said so far beyond its tokens. */
export interface StreamState {
  usage: Usage | undefined;
  error: StreamError | undefined;
  isDone: boolean;
  hasFinishReason: boolean;
}

/** What an event is to the meter: it carries tokens, holds usage and nothing else, or neither. */
export type EventContent = "tokens" | "usageOnly" | "other";

/** Reads one event of a stream, noting in `state` what it says. */
export type EventReader = (event: SseEvent, state: StreamState) => EventContent;

/** The event's data as JSON; undefined: it is none, which is the client's to notice. */
export function parseData(event: SseEvent): unknown {
  try {
    return JSON.parse(event.bytes.toString("utf8", event.start, event.end));
  } catch {
    return undefined;
  }
}

/** The OpenAI dialects' end mark; some engines put it behind other dialects as well. */
export function isDoneMark(event: SseEvent): boolean {
  return (
    event.bytes[event.start] === 0x5b &&
    event.end - event.start < 16 &&
    event.bytes.toString("latin1", event.start, event.end).trim() === "[DONE]"
  );
}

/** Notes an error in any of the shapes engines give it; the first one stands. */
export function noteError(state: StreamState, error: unknown): void {
  if (state.error !== undefined) return;
  if (!isJsonObject(error)) {
    state.error = { message: typeof error === "string" ? error : undefined, code: undefined };
    return;
  }
  const { message, code, type } = error;
  state.error = {
    message: typeof message === "string" ? message : undefined,
    code: [code, type].find((value) => typeof value === "string" || typeof value === "number"),
  };
}
