import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createKeyCheck } from "../access/key-check.ts";
import type { GatewayParts } from "../gateway-parts.ts";
import { type AdminAnswer, refusal } from "./admin-answer.ts";
import { ADMIN_ROUTES, type Audience, findAdminRoute } from "./admin-routes.ts";
import { strangerProblem } from "./browser-guard.ts";

/** What a request may take to arrive; a question to explain is the largest. */
const REQUEST_TIMEOUT_MS = 60_000;

/** The listener for operators: metrics, probes, the ledger's numbers and changes. Never the clients' port. */
export function createAdminServer(parts: GatewayParts): Server {
  const { runtime } = parts;
  let check = createKeyCheck(runtime.config.adminKeys);
  runtime.configured.add(() => {
    check = createKeyCheck(runtime.config.adminKeys);
  });
  const gate: Gate = (request, audience) => {
    const { adminKeys, admin } = runtime.config;
    if (audience === "orchestrators") return undefined;
    // A page has no key.
    if (adminKeys.length > 0) return check(request.headers) === undefined ? NO_KEY : undefined;
    return audience === "monitors" ? undefined : strangerProblem(request, admin?.host);
  };
  return createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
    void respond(parts, gate, request, response);
  });
}

const NO_KEY: AdminAnswer = {
  ...refusal(401, "expected an admin key as bearer token"),
  headers: { "www-authenticate": "Bearer" },
};

/** What a request is told that is not to be answered; undefined: it may be. */
type Gate = (request: IncomingMessage, audience: Audience) => AdminAnswer | undefined;

async function respond(
  parts: GatewayParts,
  gate: Gate,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const [path = "/"] = (request.url ?? "/").split("?", 1);
  try {
    const { status, type, body, headers } = await answer(parts, gate, path, request);
    const length = Buffer.byteLength(body);
    response.writeHead(status, { "content-type": type, "content-length": length, ...headers }).end(body);
  } catch (error) {
    // Whoever left before the end of his own request needs no answer, and is no news.
    if (!request.destroyed || request.complete) parts.runtime.log.error({ err: error, path }, "admin request failed");
    response.destroy();
  }
}

async function answer(parts: GatewayParts, gate: Gate, path: string, request: IncomingMessage): Promise<AdminAnswer> {
  const found = findAdminRoute(path);
  const refused = gate(request, found?.route.audience ?? "operators");
  if (refused !== undefined) return refused;
  if (found === undefined) return refusal(404, `no route ${path}`, { routes: ADMIN_ROUTES.map(describe) });
  const { route, names } = found;
  const method = request.method === "HEAD" ? "GET" : (request.method ?? "");
  const handler = Object.hasOwn(route.handlers, method) ? route.handlers[method] : undefined;
  if (handler !== undefined) return await handler(parts, names, request);
  const allowed = Object.keys(route.handlers).join(", ");
  return { ...refusal(405, `${path} takes ${allowed}`), headers: { allow: allowed } };
}

function describe({ path, handlers }: (typeof ADMIN_ROUTES)[number]): string {
  return `${Object.keys(handlers).join(", ")} ${path}`;
}
