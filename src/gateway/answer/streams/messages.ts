import { isJsonObject, type JsonObject } from "../../request/json-object.ts";
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

/** Events of Anthropic's `/v1/messages`. Counts are running totals: what a later event gives replaces, never adds. */
export function createMessagesEventReader(): EventReader {
  let counts: JsonObject = {};

  const noteUsage = (usage: unknown, state: StreamState): void => {
    if (!isJsonObject(usage)) return;
    const given = Object.entries(usage).filter(([, value]) => value !== null);
    counts = { ...counts, ...Object.fromEntries(given) };
    state.usage = readUsage("messages", counts) ?? state.usage;
  };

  const readData = (type: string, data: unknown, state: StreamState): void => {
    if (!isJsonObject(data)) return;
    if (type === "message_start") {
      const message = data.message;
      noteUsage(isJsonObject(message) ? message.usage : undefined, state);
    } else {
      noteUsage(data.usage, state);
      const delta = data.delta;
      if (isJsonObject(delta) && typeof delta.stop_reason === "string") state.hasFinishReason = true;
    }
  };

  return (event: SseEvent, state: StreamState): EventContent => {
    switch (typeOf(event)) {
      case "content_block_delta":
        return "tokens";
      case "message_start":
        readData("message_start", parseData(event), state);
        return "other";
      case "message_delta":
        readData("message_delta", parseData(event), state);
        return "other";
      case "error": {
        const data = parseData(event);
        noteError(state, isJsonObject(data) ? (data.error ?? data) : data);
        return "other";
      }
      case "message_stop":
      case "[DONE]":
        state.isDone = true;
        return "other";
      default:
        return "other";
    }
  };
}

/** The event's name; where an engine leaves it out, the type in its data says the same. */
function typeOf(event: SseEvent): string {
  if (event.name !== "") return event.name;
  if (isDoneMark(event)) return "[DONE]";
  const data = parseData(event);
  return isJsonObject(data) && typeof data.type === "string" ? data.type : "";
}
