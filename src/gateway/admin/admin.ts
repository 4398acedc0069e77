import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Config, Runtime } from "../../runtime/index.ts";
import { createKeyCheck } from "../access/key-check.ts";
import { type AdminAnswer, refusal } from "./admin-answer.ts";
import { ADMIN_ROUTES, findAdminRoute } from "./admin-routes.ts";
import type { AdminTask, Audience } from "./admin-task.ts";
import { strangerProblem } from "./browser-guard.ts";
import { readJson } from "./json-body.ts";

/** What a request to the admin listener may take to arrive; a question to explain is the largest. */
const REQUEST_TIMEOUT_MS = 60_000;

/** A request that may be answered: its path, without a query, names the task by its method. */
export interface AdminAsked {
  readonly method: string;
  readonly path: string;
  /** The JSON that came along; undefined: the task reads none. */
  readonly body: unknown;
}

/** Does what is asked: one balancer by itself, or several together. */
export type PerformAdmin = (task: AdminTask, asked: AdminAsked) => Promise<AdminAnswer>;

/** Whose listener it is. */
export interface AdminHost extends Pick<Runtime, "configured" | "log"> {
  /** The one that is in force. */
  readonly config: Config;
}

/** The listener for operators: metrics, probes, the ledger's numbers and changes. Never the clients' port. */
export function createAdminServer(host: AdminHost, perform: PerformAdmin): Server {
  let check = createKeyCheck(host.config.adminKeys);
  host.configured.add(() => {
    check = createKeyCheck(host.config.adminKeys);
  });
  const gate: Gate = (request, audience) => {
    const { adminKeys, admin } = host.config;
    if (audience === "orchestrators") return undefined;
    // A page has no key.
    if (adminKeys.length > 0) return check(request.headers) === undefined ? NO_KEY : undefined;
    return audience === "monitors" ? undefined : strangerProblem(request, admin?.host);
  };
  return createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
    void respond(host, gate, perform, request, response);
  });
}

const NO_KEY: AdminAnswer = {
  ...refusal(401, "expected an admin key as bearer token"),
  headers: { "www-authenticate": "Bearer" },
};

/** What a request is told that is not to be answered; undefined: it may be. */
type Gate = (request: IncomingMessage, audience: Audience) => AdminAnswer | undefined;

async function respond(
  { log }: AdminHost,
  gate: Gate,
  perform: PerformAdmin,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const [path = "/"] = (request.url ?? "/").split("?", 1);
  try {
    const { status, type, body, headers } = await answer(gate, perform, path, request);
    const length = Buffer.byteLength(body);
    response.writeHead(status, { "content-type": type, "content-length": length, ...headers }).end(body);
  } catch (error) {
    // Whoever left before the end of his own request needs no answer, and is no news.
    if (!request.destroyed || request.complete) log.error({ err: error, path }, "admin request failed");
    response.destroy();
  }
}

async function answer(gate: Gate, perform: PerformAdmin, path: string, request: IncomingMessage): Promise<AdminAnswer> {
  const found = findAdminRoute(path);
  const refused = gate(request, found?.route.audience ?? "operators");
  if (refused !== undefined) return refused;
  if (found === undefined) return refusal(404, `no route ${path}`, { routes: ADMIN_ROUTES.map(describe) });
  const { tasks } = found.route;
  const method = request.method === "HEAD" ? "GET" : (request.method ?? "");
  const task = Object.hasOwn(tasks, method) ? tasks[method] : undefined;
  if (task === undefined) {
    const allowed = Object.keys(tasks).join(", ");
    return { ...refusal(405, `${path} takes ${allowed}`), headers: { allow: allowed } };
  }
  if (task.maxBodyBytes === undefined) return perform(task, { method, path, body: undefined });
  const received = await readJson(request, task.maxBodyBytes);
  return received.ok ? perform(task, { method, path, body: received.value }) : received.answer;
}

function describe({ path, tasks }: (typeof ADMIN_ROUTES)[number]): string {
  return `${Object.keys(tasks).join(", ")} ${path}`;
}
