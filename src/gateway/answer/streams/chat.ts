import { isJsonObject, type JsonObject } from "../../request/json-object.ts";
import { isBrokenOff } from "../broken-off.ts";
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
import { holdsOnlyTokens } from "./token-scan.ts";

/** Events of `/v1/chat/completions` and `/v1/completions`. */
export const readChatEvent: EventReader = (event, state) => {
  if (event.name !== "error" && holdsOnlyTokens(event.bytes, event.start, event.end)) return "tokens";
  if (isDoneMark(event)) {
    state.isDone = true;
    return "other";
  }
  return readParsed(event, parseData(event), state);
};

function readParsed(event: SseEvent, data: unknown, state: StreamState): EventContent {
  const error = errorIn(event, data);
  if (error !== undefined) {
    noteError(state, error);
    return "other";
  }
  if (!isJsonObject(data)) return "other";
  state.usage = readUsage("chat", data.usage) ?? state.usage;
  const choices = data.choices;
  if (!Array.isArray(choices)) return "other";
  if (choices.length === 0) return isJsonObject(data.usage) ? "usageOnly" : "other";
  const objects = choices.filter(isJsonObject);
  if (objects.some(isFinished)) state.hasFinishReason = true;
  const brokenOff = objects.map((choice) => choice.finish_reason).find(isBrokenOff);
  if (brokenOff !== undefined) noteError(state, { code: brokenOff });
  return objects.some(carriesTokens) ? "tokens" : "other";
}

/** Undefined: none. Some engines give every chunk an empty or null `error`; older ones name the error in `object`. */
function errorIn(event: SseEvent, data: unknown): unknown {
  if (isJsonObject(data)) {
    if (data.error) return data.error;
    if (data.object === "error") return data;
  }
  return event.name === "error" ? (data ?? {}) : undefined;
}

function isFinished(choice: JsonObject): boolean {
  return choice.finish_reason !== undefined && choice.finish_reason !== null;
}

/** Where generated text lies in a delta. */
const OUTPUT_FIELDS = ["content", "reasoning", "reasoning_content", "refusal", "tool_calls", "function_call", "audio"];

/**
 * A chunk with a role and nothing else opens a choice: no token. After it, vLLM sends chunks of empty text for tokens
 * that are half a character: those count, as long as nothing is finished.
 */
function carriesTokens(choice: JsonObject): boolean {
  const text = choice.text;
  if (typeof text === "string") return text !== "" || !isFinished(choice);
  const delta = choice.delta;
  if (!isJsonObject(delta)) return false;
  if (OUTPUT_FIELDS.some((field) => hasContent(delta[field]))) return true;
  const isHalfCharacter = delta.content === "" || delta.reasoning === "" || delta.reasoning_content === "";
  return isHalfCharacter && typeof delta.role !== "string" && !isFinished(choice);
}

function hasContent(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}
