import { type Exchange, serveGeneration } from "./answer.ts";
import { chatCompletions } from "./api/chat-completions.ts";
import { completions } from "./api/completions.ts";
import { messages } from "./api/messages.ts";
import { embeddings, rerank, score } from "./api/pooling.ts";
import { responses } from "./api/responses.ts";
import { countTokens, tokenizeText } from "./api/token-counts.ts";
import { Failure } from "./failure.ts";
import type { GenerationApi } from "./generation.ts";

/** A `POST` route that takes a JSON body and concerns the served model. */
export interface InferenceRoute {
  /** A failure: nothing was answered yet. */
  serve(exchange: Exchange, body: unknown): Failure | undefined;
  failureBody(failure: Failure): object;
}

export const INFERENCE_ROUTES: ReadonlyMap<string, InferenceRoute> = new Map([
  ["/v1/chat/completions", generating(chatCompletions)],
  ["/v1/completions", generating(completions)],
  ["/v1/responses", generating(responses)],
  ["/v1/messages", generating(messages)],
  ["/v1/messages/count_tokens", { serve: countTokens, failureBody: messages.failureBody }],
  ["/v1/embeddings", openAi(embeddings)],
  ["/v1/rerank", openAi(rerank)],
  ["/rerank", openAi(rerank)],
  ["/v1/score", openAi(score)],
  ["/score", openAi(score)],
  ["/tokenize", openAi(tokenizeText)],
]);

function generating(api: GenerationApi): InferenceRoute {
  return {
    serve(exchange, body) {
      const generation = api.read(body);
      return generation instanceof Failure ? generation : serveGeneration(exchange, api, generation);
    },
    failureBody: api.failureBody,
  };
}

function openAi(serve: InferenceRoute["serve"]): InferenceRoute {
  return { serve, failureBody: (failure) => failure.toOpenAi() };
}
