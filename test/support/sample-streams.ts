/** Streams as engines send them, event by event, each with its token count and what its engine says of usage. */
export interface SampleStream {
  readonly name: string;
  readonly path: string;
  readonly body: object;
  readonly events: readonly string[];
  /** How many of the events carry tokens. */
  readonly tokenEvents: number;
  /** As reported inside the stream; undefined: it reports none. */
  readonly usage: { readonly prompt: number; readonly output: number } | undefined;
  /** The event that only exists because usage was asked for. */
  readonly usageEvent?: string;
}

const CHAT_BODY = { model: "m", stream: true, messages: [{ role: "user", content: "hi" }] };

const chunk = (fields: object): string =>
  `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m", ...fields })}\n\n`;
const delta = (fields: object, finish: string | null = null): object => ({
  choices: [{ index: 0, delta: fields, logprobs: null, finish_reason: finish }],
});
const named = (name: string, data: object): string =>
  `event: ${name}\ndata: ${JSON.stringify({ type: name, ...data })}\n\n`;
const USAGE = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };

const VLLM_USAGE = chunk({ choices: [], usage: USAGE });
const LLAMACPP_USAGE = chunk({
  choices: [],
  usage: { ...USAGE, prompt_tokens_details: { cached_tokens: 4 } },
  timings: { cache_n: 4, prompt_n: 5, predicted_n: 3 },
});

export const SAMPLE_STREAMS: readonly SampleStream[] = [
  {
    name: "vLLM chat, its first token half a character",
    path: "/v1/chat/completions",
    body: CHAT_BODY,
    events: [
      chunk(delta({ role: "assistant", content: "" })),
      chunk(delta({ content: "" })),
      chunk(delta({ content: "😀" })),
      chunk(delta({ content: " hi" })),
      chunk(delta({ content: "" }, "stop")),
      VLLM_USAGE,
      "data: [DONE]\n\n",
    ],
    tokenEvents: 3,
    usage: { prompt: 9, output: 3 },
    usageEvent: VLLM_USAGE,
  },
  {
    name: "llama.cpp chat",
    path: "/v1/chat/completions",
    body: CHAT_BODY,
    events: [
      chunk(delta({ role: "assistant", content: null })),
      chunk(delta({ content: "a" })),
      ":\n\n",
      chunk(delta({ content: "b" })),
      chunk({ ...delta({}, "length"), timings: { predicted_n: 3 } }),
      LLAMACPP_USAGE,
      "data: [DONE]\n\n",
    ],
    tokenEvents: 2,
    usage: { prompt: 9, output: 3 },
    usageEvent: LLAMACPP_USAGE,
  },
  {
    name: "Ollama chat",
    path: "/v1/chat/completions",
    body: CHAT_BODY,
    events: [
      chunk(delta({ role: "assistant", content: "a" })),
      chunk(delta({ role: "assistant", content: "b" })),
      chunk(delta({ role: "assistant", content: "" }, "stop")),
      VLLM_USAGE,
      "data: [DONE]\n\n",
    ],
    tokenEvents: 2,
    usage: { prompt: 9, output: 3 },
    usageEvent: VLLM_USAGE,
  },
  {
    name: "transformers serve chat, without an end mark and with usage in the last event",
    path: "/v1/chat/completions",
    body: CHAT_BODY,
    events: [
      chunk(delta({ role: "assistant" })),
      chunk(delta({ content: "a" })),
      chunk(delta({ content: "b" })),
      chunk({ ...delta({}, "stop"), usage: USAGE }),
    ],
    tokenEvents: 2,
    usage: { prompt: 9, output: 3 },
  },
  {
    name: "completions",
    path: "/v1/completions",
    body: { model: "m", stream: true, prompt: "hi" },
    events: [
      `data: {"id":"cmpl-1","choices":[{"index":0,"text":"a","finish_reason":null}]}\n\n`,
      `data: {"id":"cmpl-1","choices":[{"index":0,"text":"b","finish_reason":"stop"}]}\n\n`,
      VLLM_USAGE,
      "data: [DONE]\n\n",
    ],
    tokenEvents: 2,
    usage: { prompt: 9, output: 3 },
    usageEvent: VLLM_USAGE,
  },
  {
    name: "responses",
    path: "/v1/responses",
    body: { model: "m", stream: true, input: "hi" },
    events: [
      named("response.created", { response: { id: "r1", usage: null } }),
      named("response.output_text.delta", { delta: "a" }),
      named("response.output_text.delta", { delta: "b" }),
      named("response.completed", {
        response: { id: "r1", usage: { input_tokens: 9, output_tokens: 3, total_tokens: 12 } },
      }),
    ],
    tokenEvents: 2,
    usage: { prompt: 9, output: 3 },
  },
  {
    name: "messages",
    path: "/v1/messages",
    body: { model: "m", stream: true, max_tokens: 8, messages: [{ role: "user", content: "hi" }] },
    events: [
      named("message_start", { message: { usage: { input_tokens: 5, cache_read_input_tokens: 4, output_tokens: 1 } } }),
      named("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
      named("ping", {}),
      named("content_block_delta", { index: 0, delta: { type: "text_delta", text: "a" } }),
      named("content_block_delta", { index: 0, delta: { type: "text_delta", text: "b" } }),
      named("content_block_stop", { index: 0 }),
      named("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 3 } }),
      named("message_stop", {}),
    ],
    tokenEvents: 2,
    usage: { prompt: 9, output: 3 },
  },
];
