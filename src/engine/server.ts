import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";
import type { EngineSignals } from "../core/index.ts";
import { type Exchange, refuse } from "./answer.ts";
import { Engine } from "./engine.ts";
import { readJson, sendJson } from "./exchange.ts";
import { Failure, notFound } from "./failure.ts";
import { faultSpec } from "./faults.ts";
import { readBody } from "./generation.ts";
import { METRICS_CONTENT_TYPE, metricsText } from "./metrics.ts";
import { type EngineOptions, type EngineSettings, engineOptions } from "./options.ts";
import { INFERENCE_ROUTES, type InferenceRoute } from "./routes.ts";

/** As uvicorn, the HTTP server of vLLM, does by default. */
const KEEP_ALIVE_MS = 5000;

/** Where an engine can be reached; the port is the one that was taken. */
interface EngineAddress {
  readonly host: string;
  readonly port: number;
  readonly url: string;
}

/** The built-in engine on a socket. */
export interface EngineServer {
  listen(): Promise<EngineAddress>;
  /** Cuts every connection and stops generating. May be called twice. */
  close(): Promise<void>;
  /** Replaces the fault script. @throws on a specification that is wrong. */
  setFaults(specs: readonly string[]): void;
  /** What the engine would report of itself now. */
  signals(): EngineSignals;
}

/** @throws ZodError with every problem of the options. */
export function createEngineServer(options: EngineOptions = {}): EngineServer {
  return serveEngine(engineOptions.parse(options));
}

/** The same from options that were checked before. */
export function serveEngine(settings: EngineSettings): EngineServer {
  return new HttpEngine(settings);
}

class HttpEngine implements EngineServer {
  readonly #settings: EngineSettings;
  readonly #engine: Engine;
  readonly #server: Server;
  readonly #startedSeconds = Math.floor(Date.now() / 1000);

  constructor(settings: EngineSettings) {
    this.#settings = settings;
    this.#engine = new Engine(settings);
    this.#server = createServer({ noDelay: true, keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
      void this.#handle(request, response);
    });
  }

  async listen(): Promise<EngineAddress> {
    const { host, port } = this.#settings.listen;
    this.#server.listen(port, host);
    await once(this.#server, "listening");
    const bound = (this.#server.address() as AddressInfo).port;
    return { host, port: bound, url: `http://${host.includes(":") ? `[${host}]` : host}:${bound}` };
  }

  async close(): Promise<void> {
    this.#engine.driver.stop();
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  setFaults(specs: readonly string[]): void {
    this.#engine.faults.replace(specs.map((spec) => faultSpec.parse(spec)));
  }

  signals(): EngineSignals {
    return this.#engine.driver.signals();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? "/").split("?", 1)[0] as string;
    const route = INFERENCE_ROUTES.get(path);
    if (!this.#isAuthorized(request, path)) sendJson(response, 401, { error: "Unauthorized" });
    else if (route !== undefined) await this.#infer(route, request, response);
    else if (path === "/faults" && this.#settings.allowFaultControl) await this.#controlFaults(request, response);
    else this.#get(request, response, path);
  }

  async #infer(route: InferenceRoute, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== "POST") return methodNotAllowed(response, "POST");
    const body = await readJson(request);
    if (body === undefined) return;
    const givenId = request.headers["x-request-id"];
    const exchange: Exchange = {
      engine: this.#engine,
      response,
      id: typeof givenId === "string" && givenId !== "" ? givenId : randomUUID().replaceAll("-", ""),
      failureBody: route.failureBody,
    };
    const failure = body instanceof Failure ? body : this.#serve(route, exchange, body.value);
    if (failure !== undefined) refuse(exchange, failure);
  }

  #serve(route: InferenceRoute, exchange: Exchange, body: unknown): Failure | undefined {
    const named = readBody(modelField, body);
    if (named instanceof Failure) return named;
    const { model } = named.value;
    const isServed = model === undefined || model === null || model === this.#engine.model;
    return isServed ? route.serve(exchange, body) : notFound(`The model ${model} does not exist.`);
  }

  #get(request: IncomingMessage, response: ServerResponse, path: string): void {
    const page = this.#pages.get(path);
    if (page === undefined) sendJson(response, 404, { detail: "Not Found" });
    else if (request.method !== "GET" && request.method !== "HEAD") methodNotAllowed(response, "GET");
    else page(response);
  }

  readonly #pages: ReadonlyMap<string, (response: ServerResponse) => void> = new Map([
    [
      "/health",
      (response) => {
        response.writeHead(this.#engine.faults.healthStatus() ?? 200, { "content-length": 0 }).end();
      },
    ],
    [
      "/metrics",
      (response) => {
        response.writeHead(200, { "content-type": METRICS_CONTENT_TYPE }).end(metricsText(this.#engine));
      },
    ],
    ["/version", (response) => sendJson(response, 200, { version: packageVersion() })],
    ["/v1/models", (response) => sendJson(response, 200, { object: "list", data: [this.#modelCard()] })],
  ]);

  #modelCard(): object {
    const { model, maxModelLen } = this.#engine;
    return {
      id: model,
      object: "model",
      created: this.#startedSeconds,
      owned_by: "evenkeel",
      root: model,
      parent: null,
      max_model_len: maxModelLen,
    };
  }

  /** Like vLLM, only `/v1/` is guarded. Clients of Anthropic's API send the key in a header of its own. */
  #isAuthorized({ headers }: IncomingMessage, path: string): boolean {
    const { apiKey } = this.#settings;
    if (apiKey === undefined || !path.startsWith("/v1/")) return true;
    return headers.authorization === `Bearer ${apiKey}` || headers["x-api-key"] === apiKey;
  }

  async #controlFaults(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== "POST") return methodNotAllowed(response, "POST");
    const body = await readJson(request);
    if (body === undefined) return;
    const control = body instanceof Failure ? body : readBody(faultControl, body.value);
    if (control instanceof Failure) return sendJson(response, control.status, control.toOpenAi());
    this.#engine.faults.replace(control.value.faults);
    sendJson(response, 200, { faults: control.value.faults.length });
  }
}

const modelField = z.looseObject({ model: z.string().nullish() });

const faultControl = z.strictObject({ faults: z.array(faultSpec) });

function methodNotAllowed(response: ServerResponse, allow: string): void {
  sendJson(response, 405, { detail: "Method Not Allowed" }, { allow });
}

function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  return z.object({ version: z.string() }).parse(manifest).version;
}
