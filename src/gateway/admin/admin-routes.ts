import type { Runtime } from "../../runtime/index.ts";
import type { GatewayParts } from "../gateway-parts.ts";
import { type AdminAnswer, json } from "./admin-answer.ts";
import type { AdminHandler, AdminTask, Audience } from "./admin-task.ts";
import {
  deleteEndpoint,
  drainEndpoint,
  MAX_ENDPOINT_BYTES,
  patchEndpoint,
  putEndpoint,
  removedEndpoint,
  showEndpoint,
} from "./endpoint-changes.ts";
import { explain, MAX_EXPLAIN_BYTES } from "./explain-question.ts";
import { runtimeState } from "./pool-state.ts";
import { reloadAnswer } from "./reload-answer.ts";
import { allAlive, anyReady, endpointTogether, removalTogether, runtimeTogether } from "./together.ts";

/** A path of the admin listener. */
interface AdminRoute {
  /** With `{…}` for what is named in the path. */
  readonly path: string;
  /** By method; no other is answered. */
  readonly tasks: Readonly<Record<string, AdminTask>>;
  readonly audience: Audience;
}

/** The process answers: no I/O, no lock, nothing that load could delay. */
const alive: AdminTask = {
  answer: () => json(200, { status: "ok" }),
  scope: { kind: "all", together: allAlive },
};

/** Every route. */
export const ADMIN_ROUTES: readonly AdminRoute[] = [
  route("orchestrators", "/healthz", { GET: alive }),
  route("orchestrators", "/livez", { GET: alive }),
  route("orchestrators", "/readyz", {
    GET: {
      answer: ({ runtime }) => json(runtime.isReady ? 200 : 503, readiness(runtime)),
      scope: { kind: "all", together: anyReady },
    },
  }),
  route("monitors", "/metrics", { GET: { answer: metricsText, scope: { kind: "metrics" } } }),
  route("operators", "/admin/endpoints", {
    GET: {
      answer: ({ runtime, upstreams }) => json(200, runtimeState(runtime, upstreams)),
      scope: { kind: "all", together: runtimeTogether },
    },
  }),
  route("operators", "/admin/explain", {
    POST: { answer: explain, scope: { kind: "any" }, maxBodyBytes: MAX_EXPLAIN_BYTES },
  }),
  route("operators", "/admin/reload", {
    POST: { answer: ({ runtime }) => reloadAnswer(runtime.reloader.reload("api")), scope: { kind: "reload" } },
  }),
  route("operators", "/admin/pools/{pool}/endpoints/{id}", {
    GET: { answer: showEndpoint, scope: { kind: "all", together: endpointTogether } },
    PUT: { ...change(putEndpoint), maxBodyBytes: MAX_ENDPOINT_BYTES },
    PATCH: { ...change(patchEndpoint), maxBodyBytes: MAX_ENDPOINT_BYTES },
    DELETE: {
      answer: deleteEndpoint,
      scope: { kind: "change", shows: removedEndpoint, together: removalTogether },
    },
  }),
  route("operators", "/admin/pools/{pool}/endpoints/{id}/drain", {
    POST: change((parts, names) => drainEndpoint(parts, names, true)),
  }),
  route("operators", "/admin/pools/{pool}/endpoints/{id}/undrain", {
    POST: change((parts, names) => drainEndpoint(parts, names, false)),
  }),
];

/** The route of a path, and what it names; undefined: there is none. */
export function findAdminRoute(path: string): { route: AdminRoute; names: readonly string[] } | undefined {
  const given = path.split("/");
  for (const route of ADMIN_ROUTES) {
    const parts = route.path.split("/");
    const isIt = parts.length === given.length && parts.every((part, i) => part.startsWith("{") || part === given[i]);
    if (!isIt) continue;
    const names = given.filter((_, i) => parts[i]?.startsWith("{")).map(decoded);
    return names.every((name) => name !== undefined) ? { route, names } : undefined;
  }
  return undefined;
}

function route(audience: Audience, path: string, tasks: AdminRoute["tasks"]): AdminRoute {
  return { path, tasks, audience };
}

/** A change after which the endpoint is shown as it is by then. */
function change(answer: AdminHandler): AdminTask {
  return { answer, scope: { kind: "change", shows: showEndpoint, together: endpointTogether } };
}

/** Undefined: it is not percent-encoded as it should be. */
function decoded(name: string): string | undefined {
  try {
    return decodeURIComponent(name);
  } catch {
    return undefined;
  }
}

async function metricsText({ metrics }: GatewayParts): Promise<AdminAnswer> {
  return { status: 200, type: metrics.registry.contentType, body: await metrics.registry.metrics() };
}

function readiness(runtime: Runtime): object {
  return {
    status: runtime.isReady ? "ready" : "not ready",
    pools: Object.fromEntries(runtime.pools.map((pool) => [pool.name, pool.isReady])),
  };
}
