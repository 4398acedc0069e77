import type { KeyUse } from "../../runtime/index.ts";
import type { GatewayParts } from "../gateway-parts.ts";
import type { AdminAsked } from "./admin.ts";
import { type AdminAnswer, refusal } from "./admin-answer.ts";
import { findAdminRoute } from "./admin-routes.ts";
import type { AdminHandler, AdminTask } from "./admin-task.ts";

/** A metric and its values at a moment, in the form in which prom-client puts those of several processes together. */
export interface MetricSnapshot {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram" | "summary";
}

/** What is asked of one balancer by the listener for operators, and by those it serves together with. */
export class AdminDesk {
  readonly #parts: GatewayParts;

  constructor(parts: GatewayParts) {
    this.#parts = parts;
  }

  answer(asked: AdminAsked): Promise<AdminAnswer> {
    return this.#handle(asked, ({ answer }) => answer);
  }

  /** What a change shows that another balancer made and this one took on. */
  shown(asked: AdminAsked): Promise<AdminAnswer> {
    return this.#handle(asked, ({ answer, scope }) => (scope.kind === "change" ? scope.shows : answer));
  }

  async metrics(): Promise<readonly MetricSnapshot[]> {
    // prom-client declares the type of a metric as a number, and writes it as a word.
    return (await this.#parts.metrics.registry.getMetricsAsJSON()) as unknown as readonly MetricSnapshot[];
  }

  /** What keys have used and not got back by now, for a process that begins to serve them. */
  get keysOutstanding(): ReadonlyMap<string, KeyUse> {
    return this.#parts.access.outstanding;
  }

  /** As `keysOutstanding` of another process. */
  keysUsed(uses: ReadonlyMap<string, KeyUse>): void {
    for (const [keyId, use] of uses) this.#parts.access.usedElsewhere(keyId, use);
  }

  async #handle({ method, path, body }: AdminAsked, by: (task: AdminTask) => AdminHandler): Promise<AdminAnswer> {
    const found = findAdminRoute(path);
    const task = found?.route.tasks[method];
    if (found === undefined || task === undefined) return refusal(404, `no route ${method} ${path}`);
    return await by(task)(this.#parts, found.names, body);
  }
}
