import { isJsonObject } from "../../request/json-object.ts";
import type { SseEvent } from "../sse-reader.ts";
import {
  type EventContent,
  type EventReader,
  isDoneMark,
  noteError,
  parseData,
  type StreamState,
} from "../stream-state.ts";
import { readUsage } from "../usage.ts";

/** Events of `/v1/responses`: every kind of generated text comes as an event whose name ends in `.delta`. */
export const readResponsesEvent: EventReader = (event, state) => {
  if (event.name !== "") return readNamed(event.name, event, state);
  if (isDoneMark(event)) {
    state.isDone = true;
    return "other";
  }
  const data = parseData(event);
  return isJsonObject(data) && typeof data.type === "string" ? readNamed(data.type, event, state) : "other";
};

function readNamed(type: string, event: SseEvent, state: StreamState): EventContent {
  if (type.endsWith(".delta")) return "tokens";
  if (type === "error") {
    const data = parseData(event);
    noteError(state, isJsonObject(data) && isJsonObject(data.error) ? data.error : data);
  } else if (LAST_EVENTS.has(type)) {
    readLast(type, parseData(event), state);
  }
  return "other";
}

/** After any of these the engine sends no more. */
const LAST_EVENTS: ReadonlySet<string> = new Set(["response.completed", "response.incomplete", "response.failed"]);

function readLast(type: string, data: unknown, state: StreamState): void {
  state.isDone = true;
  state.hasFinishReason = true;
  const response = isJsonObject(data) && isJsonObject(data.response) ? data.response : {};
  state.usage = readUsage("responses", response.usage) ?? state.usage;
  if (type === "response.failed") noteError(state, response.error);
}
