/** What a request and its answer look like: one shape of prompt, stream, usage and error each. */
export type ReadDialect =
  | "chat"
  | "completions"
  | "responses"
  | "messages"
  | "embeddings"
  | "rerank"
  | "score"
  | "tokenize";

/** `passthrough`: forwarded as it comes, not looked into beyond the model's name. */
export type Dialect = ReadDialect | "passthrough";

/** A path that is balanced. */
export interface Route {
  readonly dialect: Dialect;
  /** False: the answer holds no generated tokens, so the prompt is all the work. */
  readonly generates: boolean;
  /** Whether the body may carry `stream_options.include_usage`; other dialects refuse it or report usage unasked. */
  readonly canAskUsage: boolean;
}

/** Any path of the operator's allow-list, with any method. */
export const PASSTHROUGH: Route = { dialect: "passthrough", generates: false, canAskUsage: false };

/** The route of a request path without its query; undefined: not a balanced path. All of them are POST. */
export function findRoute(path: string): Route | undefined {
  return ROUTES.get(path);
}

const promptOnly = (dialect: Dialect): Route => ({ dialect, generates: false, canAskUsage: false });

/** Every balanced path. */
export const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  ["/v1/chat/completions", { dialect: "chat", generates: true, canAskUsage: true }],
  ["/v1/completions", { dialect: "completions", generates: true, canAskUsage: true }],
  ["/v1/responses", { dialect: "responses", generates: true, canAskUsage: false }],
  ["/v1/messages", { dialect: "messages", generates: true, canAskUsage: false }],
  ["/v1/embeddings", promptOnly("embeddings")],
  ["/v1/rerank", promptOnly("rerank")],
  ["/rerank", promptOnly("rerank")],
  ["/v1/score", promptOnly("score")],
  ["/score", promptOnly("score")],
  ["/tokenize", promptOnly("tokenize")],
]);
