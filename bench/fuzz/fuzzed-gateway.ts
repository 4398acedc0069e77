import { pino } from "pino";
import { findPolicy } from "../../src/core/index.ts";
import { type RunningServer, startServer } from "../../src/gateway/index.ts";
import { type TestOverrides, testConfig, testEndpoint } from "../../test/support/test-config.ts";

/** Until what is over is given up everywhere: some turns of the event loop, on a busy machine. */
const SETTLED_MS = 5000;
const POLICY = "least_delay";

/** A balancer in this process, between fuzzed clients and fuzzed engines. */
export class FuzzedGateway {
  readonly url: string;
  readonly #server: RunningServer;
  readonly #errors: string[];
  readonly #socketsBefore: number;

  private constructor(server: RunningServer, errors: string[], socketsBefore: number) {
    this.url = server.listenUrl;
    this.#server = server;
    this.#errors = errors;
    this.#socketsBefore = socketsBefore;
  }

  /** @param engines URLs; they are asked for nothing but what clients send, and serve the model `m`. */
  static async start(engines: readonly string[], overrides: TestOverrides = {}): Promise<FuzzedGateway> {
    const socketsBefore = openSockets();
    const endpoints = engines.map((url, i) => testEndpoint(`e${i + 1}`, url, { engine: "openai", models: ["m"] }));
    const policy = { name: POLICY, options: findPolicy(POLICY).options.parse({}) };
    const config = testConfig(engines, {
      health: { intervalMs: 3_600_000 },
      ...overrides,
      pool: { endpoints, policy },
    });
    const errors: string[] = [];
    const log = pino({ level: "error" }, { write: (line: string) => void errors.push(line) });
    return new FuzzedGateway(await startServer(config, { log }), errors, socketsBefore);
  }

  /** @throws when something is still open or held, or went wrong inside. */
  async assertIdle(): Promise<void> {
    const [error] = this.#errors.splice(0);
    if (error !== undefined) throw new Error(`the balancer logged ${error}`);
    await untilNone(() => this.#open(), SETTLED_MS);
  }

  /** @throws when requests are counted as in flight, or sockets stay open. */
  async close(): Promise<void> {
    await this.assertIdle();
    const text = await (await fetch(`${this.#server.adminUrl}/metrics`)).text();
    const inFlight = /^evenkeel_requests_in_flight (\d+)$/m.exec(text)?.[1];
    const internal = /outcome="internal_error"/.test(text);
    await this.#server.close();
    if (inFlight !== "0") throw new Error(`${inFlight} requests are in flight after all are over`);
    if (internal) throw new Error("a request failed inside the balancer");
    // Of `fetch` the connection to the metrics is kept for some seconds.
    await untilNone(
      () => (openSockets() > this.#socketsBefore + 1 ? `${openSockets()} sockets` : undefined),
      SETTLED_MS,
    );
  }

  /** What is not over; undefined: nothing. */
  #open(): string | undefined {
    for (const { balancer } of this.#server.runtime.pools) {
      if (balancer.heldRequests > 0) return `${balancer.heldRequests} requests held`;
      for (const { endpoint, account } of balancer.members) {
        const { requests, contextTokens, outputTokens } = account;
        if (requests + contextTokens + outputTokens !== 0) return `${requests} leases at ${endpoint.id}`;
      }
    }
    return undefined;
  }
}

function openSockets(): number {
  return process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length;
}

async function untilNone(what: () => string | undefined, limitMs: number): Promise<void> {
  const untilMs = performance.now() + limitMs;
  for (let found = what(); found !== undefined; found = what()) {
    if (performance.now() > untilMs) throw new Error(`left after all is over: ${found}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
