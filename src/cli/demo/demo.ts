import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { type Config, readConfig } from "../../config/index.ts";
import { type Considered, findPolicy, seededRandom } from "../../core/index.ts";
import { createEngineServer, type EngineServer } from "../../engine/index.ts";
import { DECISION_CHANNEL, type DecisionMessage, type RunningServer, startServer } from "../../gateway/index.ts";
import { DemoTraffic } from "./traffic.ts";
import { type DemoDecision, type DemoPicture, renderDemo } from "./view.ts";

/** What `evenkeel demo` can be told. */
export interface DemoOptions {
  readonly policy: string;
  /** HOST:PORT of the balancer. */
  readonly listen: string;
  readonly requestsPerSecond: number;
  /** Undefined: until it is interrupted. */
  readonly seconds: number | undefined;
}

/** A fleet nobody would buy but many have: four generations of hardware behind one address. */
const ENGINE_SPEEDS = [1, 0.7, 0.4, 0.2];
const MODEL = "evenkeel-demo";
const DECISIONS_SHOWN = 8;
/** Redrawing faster than the eye reads gains nothing; a log of pictures is kept sparse. */
const LIVE_PERIOD_MS = 250;
const LOG_PERIOD_MS = 2_000;
/** To the upper left corner, and nothing below it. */
const CLEAR = "\x1b[H\x1b[J";

/** Where the demo draws. */
export interface DemoScreen {
  /** Whether a picture replaces the one before it; else they follow one another. */
  readonly isLive: boolean;
  write(text: string): void;
}

/** Runs four built-in engines, a balancer in front of them and traffic, and draws what happens. Resolves at the end. */
export async function runDemo(options: DemoOptions, screen: DemoScreen, stopped: AbortSignal): Promise<void> {
  const engines = ENGINE_SPEEDS.map((speed) =>
    createEngineServer({ listen: "127.0.0.1:0", model: MODEL, speed, profile: "llama8b-a100" }),
  );
  try {
    const addresses = await Promise.all(engines.map((engine) => engine.listen()));
    const server = await startServer(
      demoConfig(
        options,
        addresses.map(({ url }) => url),
      ),
    );
    try {
      await show(options, server, screen, stopped);
    } finally {
      await server.close();
    }
  } finally {
    await Promise.all(engines.map((engine: EngineServer) => engine.close()));
  }
}

function demoConfig({ policy, listen }: DemoOptions, urls: readonly string[]): Config {
  const endpoints = urls.map((url, i) => ({ url, id: `engine-${i + 1}`, engine: "evenkeel" }));
  const file = {
    name: "demo",
    text: JSON.stringify({
      listen,
      admin: "127.0.0.1:0",
      policy,
      endpoints,
      log: { level: "error" },
      timeouts: { drain: "1s" },
    }),
  };
  const read = readConfig({ file });
  if (!read.ok) throw new Error(read.problems.map(({ path, expected }) => `${path}: expected ${expected}`).join("\n"));
  return read.value;
}

async function show(
  options: DemoOptions,
  server: RunningServer,
  screen: DemoScreen,
  stopped: AbortSignal,
): Promise<void> {
  const random = seededRandom(1);
  const traffic = new DemoTraffic({
    url: server.listenUrl,
    model: MODEL,
    random,
    requestsPerSecond: options.requestsPerSecond,
  });
  const watch = new DecisionWatch();
  const startedAtMs = performance.now();
  const draw = (): void => {
    const text = renderDemo(picture(server, traffic, watch, (performance.now() - startedAtMs) / 1000));
    screen.write(screen.isLive ? `${CLEAR}${text}\n` : `${text}\n\n`);
  };
  traffic.start();
  const timer = setInterval(draw, screen.isLive ? LIVE_PERIOD_MS : LOG_PERIOD_MS);
  try {
    await ended(options.seconds, stopped);
  } finally {
    clearInterval(timer);
    traffic.stop();
    watch.stop();
    draw();
  }
}

function ended(seconds: number | undefined, stopped: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (seconds !== undefined) setTimeout(resolve, seconds * 1000);
    stopped.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Keeps the last decisions and counts who got what. */
class DecisionWatch {
  readonly sent = new Map<string, number>();
  readonly latest: DemoDecision[] = [];
  readonly #listener = (message: unknown): void => this.#decided(message as DecisionMessage);

  constructor() {
    subscribe(DECISION_CHANNEL, this.#listener);
  }

  stop(): void {
    unsubscribe(DECISION_CHANNEL, this.#listener);
  }

  #decided({ request, decision }: DecisionMessage): void {
    if (decision.kind !== "routed") return;
    const { endpoint, lease, explanation } = decision;
    const rank = (one: Considered): number => (one.endpoint === endpoint.id ? Number.NEGATIVE_INFINITY : one.score);
    this.sent.set(endpoint.id, (this.sent.get(endpoint.id) ?? 0) + 1);
    this.latest.push({
      promptTokens: request.promptTokens,
      cachedTokens: request.promptTokens - lease.cost.prefillTokens,
      endpoint: endpoint.id,
      scores: explanation.considered.toSorted((a, b) => rank(a) - rank(b)),
    });
    if (this.latest.length > DECISIONS_SHOWN) this.latest.shift();
  }
}

function picture(
  server: RunningServer,
  traffic: DemoTraffic,
  watch: DecisionWatch,
  elapsedSeconds: number,
): DemoPicture {
  const balancer = server.runtime.pools[0]?.balancer;
  const policy = balancer?.policyName ?? "";
  return {
    policy,
    score: findPolicy(policy).score,
    elapsedSeconds,
    answered: traffic.answered,
    failed: traffic.failed,
    times: traffic.times,
    endpoints: (balancer?.members ?? []).map(({ endpoint, account, speed }, i) => ({
      id: endpoint.id,
      speed: ENGINE_SPEEDS[i] ?? 1,
      sentRequests: watch.sent.get(endpoint.id) ?? 0,
      waitingRequests: account.waitingRequests,
      runningRequests: account.runningRequests,
      prefillTokens: account.waitingPrefillTokens,
      outputTokens: account.outputTokens,
      tokensPerSecond: speed.tokensPerSecond,
    })),
    decisions: watch.latest,
    curl: [
      `curl -N ${server.listenUrl}/v1/chat/completions -H 'content-type: application/json' \\`,
      `  -d '{"model": "${MODEL}", "stream": true, "messages": [{"role": "user", "content": "Ahoy!"}]}'`,
      `curl ${server.adminUrl ?? ""}/admin/endpoints`,
    ],
  };
}
