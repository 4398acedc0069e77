import type { IncomingMessage, ServerResponse } from "node:http";
import type { Runtime } from "../../runtime/index.ts";
import type { Caller } from "../access/access.ts";
import type { GatewayMetrics } from "../admin/metrics.ts";
import type { GatewayParts } from "../gateway-parts.ts";
import { requestIdHeaders, requestIdOf } from "../headers.ts";
import type { Route } from "../routes.ts";
import { ClientStream } from "./client-stream.ts";
import { errorBody } from "./error-answer.ts";
import type { ErrorCode, ErrorDetails } from "./errors.ts";
import { modelCard, modelList } from "./models.ts";

/** Answers that need neither a body nor an endpoint: the models, and refusals at the door. */
export class LocalAnswers {
  readonly #runtime: Runtime;
  readonly #metrics: GatewayMetrics;

  constructor({ runtime, metrics }: GatewayParts) {
    this.#runtime = runtime;
    this.#metrics = metrics;
  }

  /** Whether a path is one of the model list's. */
  static serves(path: string): boolean {
    return path === MODELS_PATH || path.startsWith(`${MODELS_PATH}/`);
  }

  /** @param caller Sees no models but its own. */
  models(request: IncomingMessage, response: ServerResponse, path: string, caller: Caller): void {
    const refuse = (code: ErrorCode, details: ErrorDetails): void =>
      this.refuse(request, response, MODELS_ROUTE, code, details);
    const name = path === MODELS_PATH ? undefined : decodeName(path.slice(MODELS_PATH.length + 1));
    const { names } = this.#runtime.directory;
    const allowed = names.filter((model) => caller.mayUse(model));
    if (request.method !== "GET" && request.method !== "HEAD") {
      refuse("method_not_allowed", { path, allowedMethods: ["GET", "HEAD"] });
    } else if (names.length === 0) {
      refuse("no_available_endpoint", { cause: "No endpoint has told its models yet." });
    } else if (name === undefined) {
      this.#found(request, response, modelList(allowed));
    } else if (allowed.includes(name)) {
      this.#found(request, response, modelCard(name));
    } else {
      refuse("model_not_found", { model: name, knownModels: allowed });
    }
  }

  #found(request: IncomingMessage, response: ServerResponse, found: object): void {
    const body = Buffer.from(JSON.stringify(found));
    const headers = ["content-type", "application/json", "content-length", String(body.length)];
    this.#answer(response, 200, [...headers, ...requestIdHeaders(requestIdOf(request.headers), undefined)], body);
    this.#metrics.answeredLocally(MODELS_ROUTE, "ok");
  }

  /** @param route The route or, where there is none that is balanced, what metrics call it. */
  refuse(
    request: IncomingMessage,
    response: ServerResponse,
    route: Route | typeof MODELS_ROUTE | typeof OTHER_ROUTE,
    code: ErrorCode,
    details: ErrorDetails,
  ): void {
    const requestId = requestIdOf(request.headers);
    const dialect = typeof route === "string" ? undefined : route.dialect;
    const { status, headers, body } = errorBody(dialect, code, { ...details, requestId });
    // A client that waits for leave to send its body may now send it or not: the next request could not be told apart.
    if (request.headers.expect !== undefined) response.shouldKeepAlive = false;
    this.#answer(response, status, [...Object.entries(headers).flat(), ...requestIdHeaders(requestId, dialect)], body);
    this.#metrics.answeredLocally(dialect ?? String(route), code);
  }

  #answer(response: ServerResponse, status: number, headers: string[], body: Buffer): void {
    new ClientStream(response, () => this.#runtime.isDraining).answer(status, headers, body);
  }
}

const MODELS_PATH = "/v1/models";
const MODELS_ROUTE = "models";
/** What metrics call the route of every path that is none. */
export const OTHER_ROUTE = "other";

/** A name that is not valid percent-encoding is taken as it stands: no such model exists. */
function decodeName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
