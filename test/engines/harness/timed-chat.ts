import { chatEventsOf, chatTextOf } from "./events.ts";

export interface ChatMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** A streamed answer with the time its first text took to come. */
export interface TimedAnswer {
  readonly endpoint: string;
  readonly ttftMs: number;
  readonly text: string;
  readonly promptTokens: number;
  /** How much of the prompt the engine had in its prefix cache, as it says itself. */
  readonly cachedTokens: number;
}

/** Sends a chat request as one turn of a session and reads its stream to the end. */
export async function timedChat(
  url: string,
  session: string,
  body: { readonly model: string; readonly messages: readonly ChatMessage[]; readonly max_tokens: number },
): Promise<TimedAnswer> {
  const startedAtMs = performance.now();
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-session-id": session },
    body: JSON.stringify({ ...body, temperature: 0, stream: true, stream_options: { include_usage: true } }),
  });
  if (response.status !== 200 || response.body === null) {
    throw new Error(`${response.status}: ${await response.text()}`);
  }
  let stream = "";
  let ttftMs: number | undefined;
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    stream += text;
    if (chatTextOf(wholeEvents(stream)) !== "") ttftMs ??= performance.now() - startedAtMs;
  }
  const usage = chatEventsOf(stream).findLast((event) => event.usage !== undefined)?.usage;
  if (ttftMs === undefined || usage === undefined) throw new Error(`no text or no usage: ${stream}`);
  return {
    endpoint: response.headers.get("x-evenkeel-endpoint") ?? "",
    ttftMs,
    text: chatTextOf(stream),
    promptTokens: usage.prompt_tokens,
    cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
  };
}

function wholeEvents(stream: string): string {
  return stream.slice(0, stream.lastIndexOf("\n\n") + 2);
}
