import type { Config } from "../../src/runtime/index.ts";
import { type Behaviour, type FakeUpstream, startFake } from "./fake-upstream.ts";
import { type ClientAnswer, exchange } from "./http-client.ts";
import { type TestOverrides, testConfig, testEndpoint } from "./test-config.ts";
import { startGateway, type TestGateway } from "./test-gateway.ts";

/** A gateway that asks its endpoints in a fixed order. */
export interface OrderedGateway extends TestGateway {
  /** Those that are not URLs alone. */
  readonly fakes: readonly FakeUpstream[];
  /** Where chats are sent. */
  readonly chatUrl: string;
  /** Sends a chat and waits for its answer. */
  chat(body: object, headers?: Readonly<Record<string, string>>): Promise<ClientAnswer>;
  /** Requests that each of `fakes` has had. */
  hits(): number[];
}

/** What a test of what becomes of one request sets differently, besides what any may. */
interface OrderedOverrides extends TestOverrides {
  /** What is left out ejects nobody: the endpoints of most tests fail on purpose. */
  readonly ejection?: Partial<Config["health"]["ejection"]>;
}

const NO_EJECTION = { failures: 1_000_000, minRequests: 1_000_000 };

/**
 * Starts a gateway in front of endpoints that are asked in this order: the first for every request, another where those
 * before it were tried. A text is the URL of an endpoint that the test does not start. Probes take no part after the first.
 */
export async function startOrdered(
  endpoints: readonly (Behaviour | string)[],
  { ejection, ...overrides }: OrderedOverrides = {},
): Promise<OrderedGateway> {
  const started: (FakeUpstream | string)[] = [];
  for (const one of endpoints) started.push(typeof one === "string" ? one : await startFake(one));
  const fakes = started.filter((one) => typeof one !== "string");
  const health = { ...testConfig([]).health, intervalMs: 60_000, ...overrides.health };
  const gateway = await startGateway(started, {
    ...overrides,
    pool: { ...orderedPool(started), ...overrides.pool },
    health: { ...health, ejection: { ...health.ejection, ...NO_EJECTION, ...ejection } },
  });
  const chatUrl = `${gateway.listenUrl}/v1/chat/completions`;
  return {
    ...gateway,
    fakes,
    chatUrl,
    chat: (body, headers = {}) => exchange(chatUrl, { body, headers }),
    hits: () => fakes.map(({ calls }) => calls.length),
  };
}

function orderedPool(started: readonly (FakeUpstream | string)[]): Partial<Config["pools"][number]> {
  const urls = started.map((one) => (typeof one === "string" ? one : one.url));
  return {
    policy: { name: "weighted_round_robin", options: {} },
    endpoints: urls.map((url, i) => testEndpoint(`e${i + 1}`, url, { weight: 1_000_000 / 1_000 ** i })),
  };
}
