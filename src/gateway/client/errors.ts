/** What an error's sentence is made of; each code uses the few that belong to it. */
export interface ErrorDetails {
  /** What exactly happened, in words for the client. */
  readonly cause?: string;
  readonly path?: string;
  readonly method?: string;
  /** Methods the path does answer. */
  readonly allowedMethods?: readonly string[];
  /** As the client wrote it; absent: it named none. */
  readonly model?: string | undefined;
  readonly knownModels?: readonly string[];
  readonly limitBytes?: number | undefined;
  /** When a retry has a chance; absent: nobody knows. */
  readonly retryAfterMs?: number;
  readonly requestId?: string;
  /** What is left of the caller's limits, as headers, names and values in turn; absent: it has none. */
  readonly limits?: readonly string[];
}

interface ErrorKind {
  readonly status: number;
  readonly openaiType: string;
  readonly anthropicType: string;
  /** Whether the same request may succeed later; SDKs are told not to try again where it cannot. */
  readonly isWorthRetrying: boolean;
  /** The client's connection is of no further use: its body was not read to the end, or the process is leaving. */
  readonly closesConnection?: true;
  /** One or two whole sentences. */
  message(details: ErrorDetails): string;
}

/** The errors that the balancer itself answers with; those of engines pass through as they are. */
export type ErrorCode =
  | "invalid_json"
  | "invalid_body"
  | "request_timeout"
  | "request_too_large"
  | "route_not_found"
  | "method_not_allowed"
  | "expectation_failed"
  | "malformed_request"
  | "head_too_large"
  | "upgrade_refused"
  | "invalid_key"
  | "forbidden_model"
  | "model_not_found"
  | "rate_limited"
  | "overloaded"
  | "queue_full"
  | "queue_timeout"
  | "shed"
  | "no_available_endpoint"
  | "too_many_connections"
  | "too_much_buffered"
  | "shutting_down"
  | "upstream_error"
  | "upstream_timeout"
  | "internal_error";

const clientFault = {
  openaiType: "invalid_request_error",
  anthropicType: "invalid_request_error",
  isWorthRetrying: false,
};

/** The fleet, not the request, is in the way. */
const overload = {
  openaiType: "server_error",
  anthropicType: "overloaded_error",
  isWorthRetrying: true,
};

/** One row per code; docs/errors.md lists the same. */
export const ERRORS: Readonly<Record<ErrorCode, ErrorKind>> = {
  invalid_json: {
    ...clientFault,
    status: 400,
    message: ({ cause }) => cause ?? "The body is not valid JSON.",
  },
  invalid_body: {
    ...clientFault,
    status: 400,
    message: ({ cause }) => cause ?? "The body could not be read.",
  },
  request_timeout: {
    ...clientFault,
    status: 408,
    isWorthRetrying: true,
    closesConnection: true,
    message: ({ cause }) => cause ?? "The body did not arrive in time.",
  },
  request_too_large: {
    ...clientFault,
    status: 413,
    closesConnection: true,
    message: ({ limitBytes }) => `The body is larger than the limit of ${limitBytes ?? "this server"} bytes.`,
  },
  route_not_found: {
    ...clientFault,
    anthropicType: "not_found_error",
    status: 404,
    message: ({ method, path }) => `There is no route ${[method, path].filter(Boolean).join(" ")} here.`,
  },
  method_not_allowed: {
    ...clientFault,
    status: 405,
    message: ({ path, allowedMethods }) =>
      `${path ?? "This path"} takes ${(allowedMethods ?? ["POST"]).join(", ")} only.`,
  },
  expectation_failed: {
    ...clientFault,
    status: 417,
    message: () => "The Expect header may only be 100-continue.",
  },
  malformed_request: {
    ...clientFault,
    status: 400,
    closesConnection: true,
    message: ({ cause }) => cause ?? "The request is not valid HTTP/1.1.",
  },
  head_too_large: {
    ...clientFault,
    status: 431,
    closesConnection: true,
    message: ({ cause, limitBytes }) =>
      cause ?? `Request line and headers are larger than the limit of ${limitBytes ?? "this server"} bytes.`,
  },
  upgrade_refused: {
    ...clientFault,
    status: 400,
    closesConnection: true,
    message: () => "No other protocol than HTTP/1.1 is spoken here.",
  },
  invalid_key: {
    status: 401,
    openaiType: "authentication_error",
    anthropicType: "authentication_error",
    isWorthRetrying: false,
    closesConnection: true,
    message: () => "A valid key is needed: as `Authorization: Bearer <key>` or as `x-api-key: <key>`.",
  },
  forbidden_model: {
    status: 403,
    openaiType: "permission_error",
    anthropicType: "permission_error",
    isWorthRetrying: false,
    message: ({ model }) =>
      `This key may not use ${model === undefined ? "a model that is not named" : `the model "${model}"`}.`,
  },
  model_not_found: {
    ...clientFault,
    anthropicType: "not_found_error",
    status: 404,
    message: ({ model, knownModels }) =>
      `${model === undefined ? "The request names no model." : `The model "${model}" is not served here.`} ${listModels(knownModels ?? [])}`,
  },
  rate_limited: {
    status: 429,
    openaiType: "rate_limit_error",
    anthropicType: "rate_limit_error",
    isWorthRetrying: true,
    message: ({ cause }) => cause ?? "This key is over its limit.",
  },
  overloaded: {
    ...overload,
    status: 429,
    message: ({ cause }) => cause ?? "All endpoints are at their limit.",
  },
  queue_full: {
    ...overload,
    status: 429,
    message: ({ cause }) => cause ?? "All endpoints are busy and no more requests can wait for them.",
  },
  queue_timeout: {
    ...overload,
    status: 429,
    message: ({ cause }) => cause ?? "No endpoint had room before the wait for one was over.",
  },
  shed: {
    ...overload,
    status: 429,
    message: ({ cause }) => cause ?? "All endpoints are busy and requests of higher priority come first.",
  },
  no_available_endpoint: {
    ...overload,
    status: 503,
    message: ({ cause }) => cause ?? "No endpoint can take requests now.",
  },
  too_many_connections: {
    ...overload,
    status: 503,
    closesConnection: true,
    message: () => "This balancer has as many connections as it may.",
  },
  too_much_buffered: {
    ...overload,
    status: 503,
    closesConnection: true,
    message: () => "This balancer holds as many bytes of requests as it may.",
  },
  shutting_down: {
    ...overload,
    status: 503,
    closesConnection: true,
    message: () => "This balancer is shutting down.",
  },
  upstream_error: {
    status: 502,
    openaiType: "server_error",
    anthropicType: "api_error",
    isWorthRetrying: true,
    message: ({ cause }) => cause ?? "The endpoint failed before it had answered.",
  },
  upstream_timeout: {
    status: 504,
    openaiType: "server_error",
    anthropicType: "timeout_error",
    isWorthRetrying: true,
    message: ({ cause }) => cause ?? "The endpoint did not answer in time.",
  },
  internal_error: {
    status: 500,
    openaiType: "server_error",
    anthropicType: "api_error",
    isWorthRetrying: true,
    message: () => "The balancer failed; this is a bug in it.",
  },
};

/** More names than this help nobody who reads the message. */
const MAX_LISTED_MODELS = 20;

function listModels(models: readonly string[]): string {
  if (models.length === 0) return "No model is known yet.";
  const rest = models.length - MAX_LISTED_MODELS;
  const names = models.slice(0, MAX_LISTED_MODELS).join(", ");
  return `Known models: ${names}${rest > 0 ? ` and ${rest} more` : ""}.`;
}
