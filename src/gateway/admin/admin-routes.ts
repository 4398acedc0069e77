import type { IncomingMessage } from "node:http";
import type { ReloadReport, Runtime } from "../../runtime/index.ts";
import type { GatewayParts } from "../gateway-parts.ts";
import { type AdminAnswer, invalid, json, refusal } from "./admin-answer.ts";
import { deleteEndpoint, drainEndpoint, patchEndpoint, putEndpoint, showEndpoint } from "./endpoint-changes.ts";
import { explain } from "./explain-question.ts";
import { runtimeState } from "./pool-state.ts";

/** @param names What the path has in the places of `{…}`, in order. */
export type AdminHandler = (
  parts: GatewayParts,
  names: readonly string[],
  request: IncomingMessage,
) => AdminAnswer | Promise<AdminAnswer>;

/** A path of the admin listener. */
interface AdminRoute {
  /** With `{…}` for what is named in the path. */
  readonly path: string;
  /** By method; no other is answered. */
  readonly handlers: Readonly<Record<string, AdminHandler>>;
  readonly audience: Audience;
}

/**
 * Whom a path is for. `orchestrators` have no key. `monitors` have one if there are any, and reach the listener by
 * whatever name it has. What is for `operators` is kept from pages in their browsers, too.
 */
export type Audience = "orchestrators" | "monitors" | "operators";

const alive: AdminHandler = () => json(200, { status: "ok" });

/** Every route. */
export const ADMIN_ROUTES: readonly AdminRoute[] = [
  // The process answers: no I/O, no lock, nothing that load could delay.
  route("orchestrators", "/healthz", { GET: alive }),
  route("orchestrators", "/livez", { GET: alive }),
  route("orchestrators", "/readyz", { GET: ({ runtime }) => json(runtime.isReady ? 200 : 503, readiness(runtime)) }),
  route("monitors", "/metrics", { GET: metricsText }),
  route("operators", "/admin/endpoints", {
    GET: ({ runtime, upstreams }) => json(200, runtimeState(runtime, upstreams)),
  }),
  route("operators", "/admin/explain", { POST: explain }),
  route("operators", "/admin/reload", { POST: reload }),
  route("operators", "/admin/pools/{pool}/endpoints/{id}", {
    GET: showEndpoint,
    PUT: putEndpoint,
    PATCH: patchEndpoint,
    DELETE: deleteEndpoint,
  }),
  route("operators", "/admin/pools/{pool}/endpoints/{id}/drain", {
    POST: (parts, names) => drainEndpoint(parts, names, true),
  }),
  route("operators", "/admin/pools/{pool}/endpoints/{id}/undrain", {
    POST: (parts, names) => drainEndpoint(parts, names, false),
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

function route(audience: Audience, path: string, handlers: AdminRoute["handlers"]): AdminRoute {
  return { path, handlers, audience };
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

function reload({ runtime }: GatewayParts): AdminAnswer {
  return reloadAnswer(runtime.reloader.reload("api"));
}

function reloadAnswer(report: ReloadReport): AdminAnswer {
  switch (report.kind) {
    case "applied":
      return json(200, { result: report.kind, changed: report.changed });
    case "unchanged":
      return json(200, { result: report.kind });
    case "invalid":
      return invalid("the configuration cannot be used, the one of before stays in force", report.problems);
    case "needs_restart":
      return refusal(409, `these settings need a restart: ${report.settings.join(", ")}; nothing was changed`, {
        settings: report.settings,
      });
    case "no_source":
      return refusal(409, "this process was not told where its configuration comes from");
  }
}
