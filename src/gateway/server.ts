import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { type Config, Runtime, type RuntimeParts } from "../runtime/index.ts";
import { Access, type Caller } from "./access/access.ts";
import { createAdminServer } from "./admin/admin.ts";
import { AdminDesk } from "./admin/admin-desk.ts";
import { GatewayMetrics } from "./admin/metrics.ts";
import type { ErrorCode, ErrorDetails } from "./client/errors.ts";
import { LocalAnswers, OTHER_ROUTE } from "./client/local-answers.ts";
import { Exchange } from "./exchange.ts";
import { PoolBudgets } from "./failover/pool-budgets.ts";
import type { GatewayParts } from "./gateway-parts.ts";
import { closeNow, Listener, listenOn } from "./listener.ts";
import { BufferBudget } from "./request/buffer-budget.ts";
import { LoopTurns } from "./request/loop-turns.ts";
import { senderReaders } from "./request/sender.ts";
import { findRoute, PASSTHROUGH, type Route } from "./routes.ts";
import { warnOfTls } from "./tls-warnings.ts";
import { Upstreams } from "./upstream/upstreams.ts";
import { Watchdog } from "./watchdog.ts";

/** A balancer that serves. */
export interface RunningServer {
  /** Where clients connect, with the port that was really taken. */
  readonly listenUrl: string;
  /** Undefined: the admin listener is off. */
  readonly adminUrl: string | undefined;
  readonly runtime: Runtime;
  /** What the admin listener asks, for one that is elsewhere. */
  readonly desk: AdminDesk;
  /**
   * Says that it is leaving, soon after stops accepting, lets running requests finish within the drain limit, then ends
   * everything. May be called twice.
   */
  close(): Promise<void>;
}

/** Starts a balancer as configured. @throws when an address cannot be listened on or the file to record to not be written. */
export async function startServer(config: Config, runtimeParts: RuntimeParts = {}): Promise<RunningServer> {
  const runtime = new Runtime(config, runtimeParts);
  const gateway = new Gateway(gatewayParts(runtime));
  return gateway.start();
}

/** What follows the configuration does so whenever another one is in force. */
function gatewayParts(runtime: Runtime): GatewayParts {
  const access = new Access(runtime.config.keys, runtime.clock, runtime.sharing?.keys);
  let senders = senderReaders(runtime.config);
  runtime.configured.add(() => {
    access.configure(runtime.config.keys);
    senders = senderReaders(runtime.config);
  });
  const upstreams = new Upstreams(runtime);
  const buffers = new BufferBudget(() => runtime.config.limits.bufferedBytes);
  return {
    runtime,
    access,
    get senders() {
      return senders;
    },
    upstreams,
    watchdog: new Watchdog(runtime.clock),
    metrics: new GatewayMetrics(runtime, upstreams, buffers),
    buffers,
    budgets: new PoolBudgets(),
    turns: new LoopTurns(),
  };
}

class Gateway {
  readonly #parts: GatewayParts;
  readonly #listener: Listener;
  readonly #desk: AdminDesk;
  readonly #admin: Server | undefined;
  readonly #local: LocalAnswers;
  /** New requests are refused. */
  #isClosed = false;
  #closing: Promise<void> | undefined;

  constructor(parts: GatewayParts) {
    const { runtime, metrics } = parts;
    this.#parts = parts;
    this.#local = new LocalAnswers(parts);
    this.#desk = new AdminDesk(parts);
    this.#admin =
      runtime.config.admin === undefined
        ? undefined
        : createAdminServer(runtime, (_task, asked) => this.#desk.answer(asked));
    this.#listener = new Listener(runtime.config, {
      request: (request, response) => this.#dispatch(request, response),
      refused: (request, response, code, details) => this.#refuse(request, response, undefined, code, details),
      rejected: (code) => metrics.answeredLocally(OTHER_ROUTE, code),
      handshakeFailed: (reason) => runtime.log.debug({ reason }, "a client failed to agree on TLS"),
    });
    runtime.configured.add(() => {
      this.#listener.configure(runtime.config);
      warnOfTls(runtime);
    });
  }

  async start(): Promise<RunningServer> {
    const { runtime } = this.#parts;
    const { listen, admin } = runtime.config;
    const listenUrl = await this.#listener.listen(listen);
    try {
      const adminUrl =
        this.#admin === undefined || admin === undefined ? undefined : `http://${await listenOn(this.#admin, admin)}`;
      runtime.start();
      warnOfTls(runtime);
      return { listenUrl, adminUrl, runtime, desk: this.#desk, close: () => this.close() };
    } catch (error) {
      void this.#listener.close();
      this.#admin?.close();
      throw error;
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#drain();
    return this.#closing;
  }

  #dispatch(request: IncomingMessage, response: ServerResponse): void {
    request.url = originForm(request.url ?? "/");
    const [path = "/"] = request.url.split("?", 1);
    const route = findRoute(path) ?? (this.#parts.runtime.config.passthrough.includes(path) ? PASSTHROUGH : undefined);
    if (this.#isClosed) {
      this.#refuse(request, response, route, "shutting_down", { retryAfterMs: RESTART_MS });
      return;
    }
    const caller = this.#parts.access.admit(request.headers);
    if (caller === undefined) this.#refuse(request, response, route, "invalid_key");
    else if (route === undefined) this.#answerLocally(request, response, path, caller);
    else if (route !== PASSTHROUGH && request.method !== "POST") {
      this.#refuse(request, response, route, "method_not_allowed", { path, allowedMethods: ["POST"] });
    } else this.#exchange(request, response, route, caller);
  }

  #answerLocally(request: IncomingMessage, response: ServerResponse, path: string, caller: Caller): void {
    if (LocalAnswers.serves(path)) this.#local.models(request, response, path, caller);
    else this.#refuse(request, response, undefined, "route_not_found", { method: request.method ?? "", path });
  }

  #exchange(request: IncomingMessage, response: ServerResponse, route: Route, caller: Caller): void {
    const taking = caller.takeRequest();
    if (taking.isTaken) void new Exchange(this.#parts, route, request, response, caller).run();
    else {
      const cause = "This key has sent the requests it may send in a minute.";
      const details = { cause, retryAfterMs: taking.waitMs, limits: caller.limitHeaders() };
      this.#refuse(request, response, route, "rate_limited", details);
    }
  }

  #refuse(
    request: IncomingMessage,
    response: ServerResponse,
    route: Route | undefined,
    code: ErrorCode,
    details: ErrorDetails = {},
  ): void {
    this.#local.refuse(request, response, route ?? OTHER_ROUTE, code, details);
  }

  async #drain(): Promise<void> {
    const { runtime, upstreams, watchdog } = this.#parts;
    const limit = runtime.config.timeouts.drainMs;
    const lameMs = Math.min(LAME_DUCK_MS, (limit ?? Number.POSITIVE_INFINITY) * LAME_DUCK_SHARE);
    runtime.drain();
    await new Promise((resolve) => setTimeout(resolve, lameMs));
    this.#isClosed = true;
    const timers = limit === undefined ? [] : this.#endAt(limit - 2 * lameMs, limit - lameMs);
    await this.#listener.close();
    for (const timer of timers) clearTimeout(timer);
    await closeNow(this.#admin);
    watchdog.close();
    await upstreams.close();
    await runtime.close();
  }

  /** Who is held by `lastWordMs` from now gets nowhere any more and is told so; everything else has until `cutMs`. */
  #endAt(lastWordMs: number, cutMs: number): readonly NodeJS.Timeout[] {
    const releaseAll = (): void => {
      for (const { balancer } of this.#parts.runtime.pools) balancer.close();
    };
    return [setTimeout(releaseAll, lastWordMs), setTimeout(() => this.#listener.cut(), cutMs)];
  }
}

/** What clients are told to wait when this process ends: another one is up by then, or the same again. */
const RESTART_MS = 1_000;
/**
 * Between the word that this process is leaving and the end of its listener: whoever sends here goes on for as long as
 * that word takes to reach it, and would find the port closed.
 */
const LAME_DUCK_MS = 1_000;
/** The most of the drain limit that may go into it. As much before its end nobody is held any more. */
const LAME_DUCK_SHARE = 0.1;

/**
 * The target without scheme and host, which only proxies are sent (RFC 9112, 3.2.2). They choose nothing: where a
 * request goes is up to its path and its model.
 */
function originForm(target: string): string {
  if (target.startsWith("/")) return target;
  const rest = target.replace(/^https?:\/\/[^/?#]*/i, "");
  return rest.startsWith("/") || rest === target ? rest : `/${rest}`;
}
