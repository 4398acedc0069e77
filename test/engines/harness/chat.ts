import { type ClientCall, send } from "../../support/http-client.ts";
import { until } from "../../support/until.ts";
import { chatEventsOf, chatTextOf } from "./events.ts";
import { LLAMA_MODEL } from "./llama-server.ts";
import { VLLM_MODEL } from "./vllm-server.ts";

/** More tokens than any test waits for: a stream that is under way until something ends it. */
const ENDLESS_TOKENS = 3500;

/** A chat request for llama.cpp with an answer of exactly `tokens`, the same on every server. */
export function llamaChat(tokens: number, content = "Sing of keels"): object {
  return {
    model: LLAMA_MODEL,
    messages: [{ role: "user", content }],
    max_tokens: tokens,
    temperature: 0,
    ignore_eos: true,
  };
}

/** The same for vLLM. Its tiny model speaks in bytes, many of which are no text before the next one has come. */
export function vllmChat(tokens: number, content = "Sing of keels"): object {
  return { ...llamaChat(tokens, content), model: VLLM_MODEL };
}

export const ENDLESS_CHAT: object = llamaChat(ENDLESS_TOKENS);

/** A stream that goes on for seconds, returned when its first text has come. */
export async function startEndlessStream(url: string, chat: object = ENDLESS_CHAT): Promise<ClientCall> {
  const call = send(`${url}/v1/chat/completions`, { body: { ...chat, stream: true } });
  await until(() => chatTextOf(call.text) !== "");
  return call;
}

/** The error in a stream that went wrong; undefined: it has none. */
export function errorIn(stream: string): unknown {
  return chatEventsOf(stream).find(({ error }) => error !== undefined)?.error;
}
