import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Runtime, ServedPool } from "../../runtime/index.ts";
import type { GatewayParts } from "../gateway-parts.ts";
import { receiveBody } from "../request/receive-body.ts";
import { explainRequest } from "./explain.ts";

type Answer = { readonly status: number; readonly type: string; readonly body: string };
type Handler = (parts: GatewayParts, request: IncomingMessage) => Answer | Promise<Answer>;

const json = (status: number, value: unknown): Answer => ({
  status,
  type: "application/json",
  body: `${JSON.stringify(value, null, 2)}\n`,
});

/** Every admin route. */
const HANDLERS: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  // The process answers: no I/O, no lock, nothing that load could delay.
  ["GET /healthz", () => json(200, { status: "ok" })],
  ["GET /readyz", ({ runtime }) => json(runtime.isReady ? 200 : 503, readiness(runtime))],
  ["GET /metrics", metricsText],
  ["GET /admin/endpoints", ({ runtime }) => json(200, { pools: runtime.pools.map(poolState) })],
  ["POST /admin/explain", explain],
]);

/** The listener for operators: metrics, probes and the ledger's numbers. Never the clients' port. */
export function createAdminServer(parts: GatewayParts): Server {
  return createServer((request, response) => {
    void answer(parts, request, response);
  });
}

async function answer(parts: GatewayParts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [path = "/"] = (request.url ?? "/").split("?", 1);
  const handler = HANDLERS.get(`${request.method} ${path}`);
  try {
    const { status, type, body } =
      (await handler?.(parts, request)) ?? json(404, { error: `no route ${path}`, routes: [...HANDLERS.keys()] });
    response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(body) });
    response.end(body);
  } catch (error) {
    parts.runtime.log.error({ err: error, path }, "admin request failed");
    response.destroy();
  }
}

async function metricsText({ metrics }: GatewayParts): Promise<Answer> {
  return { status: 200, type: metrics.registry.contentType, body: await metrics.registry.metrics() };
}

function readiness(runtime: Runtime): object {
  return {
    status: runtime.isReady ? "ready" : "not ready",
    pools: Object.fromEntries(runtime.pools.map((pool) => [pool.name, pool.isReady])),
  };
}

/** The pool as the balancer sees it at this moment. */
function poolState(pool: ServedPool): object {
  return {
    name: pool.name,
    policy: pool.balancer.policyName,
    heldRequests: pool.balancer.heldRequests,
    endpoints: pool.balancer.members.map((member) => {
      const { endpoint, account, speed, signals } = member;
      return {
        id: endpoint.id,
        url: endpoint.url,
        engine: pool.monitor(endpoint.id).engine,
        availability: member.availability,
        isDraining: member.isDraining,
        weight: endpoint.weight,
        models: member.models === undefined ? null : [...member.models],
        work: {
          requests: account.requests,
          waitingRequests: account.waitingRequests,
          runningRequests: account.runningRequests,
          heldRequests: member.held.requests,
          waitingPrefillTokens: account.waitingPrefillTokens,
          expectedOutputTokens: account.outputTokens,
          contextTokens: account.contextTokens,
        },
        speed: {
          tokensPerSecond: speed.tokensPerSecond,
          isConfigured: endpoint.tokensPerSecond !== undefined,
          samples: speed.samples,
          decodeScale: speed.decodeScale,
          prefillScale: speed.prefillScale,
        },
        kvCapacityTokens: member.kvCapacityTokens ?? null,
        indexedBlocks: member.mirror.size,
        signals: signals ?? null,
      };
    }),
  };
}

/** Largest request to explain: what the gateway itself would take at most by default. */
const MAX_EXPLAIN_BYTES = 64 * 1024 * 1024;
const MAX_EXPLAIN_MS = 60_000;

async function explain(parts: GatewayParts, request: IncomingMessage): Promise<Answer> {
  const { runtime, watchdog } = parts;
  const limits = { bytes: MAX_EXPLAIN_BYTES, deadlineMs: runtime.clock.nowMs() + MAX_EXPLAIN_MS };
  const received = await receiveBody(request, limits, watchdog);
  if (received.kind !== "received") return json(400, { error: `the question could not be read: ${received.kind}` });
  const question = parseQuestion(received.decoded ?? received.sent);
  if (typeof question === "string") return json(400, { error: question });
  const found = explainRequest(parts.runtime, parts.sessionKeys, question);
  return typeof found === "string" ? json(400, { error: found }) : json(200, found);
}

function parseQuestion(text: Buffer): Parameters<typeof explainRequest>[2] | string {
  let question: unknown;
  try {
    question = JSON.parse(text.toString());
  } catch {
    return "expected JSON: { path, headers, body }";
  }
  if (typeof question !== "object" || question === null) return "expected an object: { path, headers, body }";
  const { path = "/v1/chat/completions", headers = {}, body } = question as Record<string, unknown>;
  if (typeof path !== "string") return "path: expected a string";
  if (typeof headers !== "object" || headers === null) return "headers: expected an object";
  if (typeof body !== "object" || body === null) return "body: expected the request's JSON body";
  const named = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]);
  return { path, headers: Object.fromEntries(named), body: Buffer.from(JSON.stringify(body)) };
}
