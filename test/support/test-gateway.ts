import { expect, onTestFinished } from "vitest";
import { type RunningServer, startServer } from "../../src/gateway/index.ts";
import type { Config, RuntimeParts } from "../../src/runtime/index.ts";
import type { FakeUpstream } from "./fake-upstream.ts";
import { parseSamples, type Sample, sumOf } from "./metric-samples.ts";
import { type TestOverrides, testConfig } from "./test-config.ts";
import { until } from "./until.ts";

/** A running balancer and what tests ask of it. */
export interface TestGateway extends RunningServer {
  readonly admin: string;
  /** Sum of the series of a metric, as Prometheus would read it now; `labels` narrows it. */
  metric(name: string, labels?: Readonly<Record<string, string>>): Promise<number>;
  /** How many requests ended in which way. */
  outcomes(): Promise<Record<string, number>>;
}

/** Starts a balancer in front of `fakes`, waits until it is ready and knows a model, and closes it when the test ends. */
export async function startGateway(
  fakes: readonly (FakeUpstream | string)[],
  overrides: TestOverrides = {},
): Promise<TestGateway> {
  const gateway = await runGateway(testConfig(fakes.map(urlOf), overrides));
  await until(() => gateway.runtime.isReady && gateway.runtime.directory.names.length > 0);
  return gateway;
}

/** As `startGateway`, without waiting for anything. */
export async function runGateway(config: Config, parts: RuntimeParts = {}): Promise<TestGateway> {
  const server = await startServer(config, parts);
  onTestFinished(() => server.close());
  const admin = server.adminUrl ?? "";
  const samples = async (): Promise<Sample[]> => parseSamples(await (await fetch(`${admin}/metrics`)).text());
  return {
    ...server,
    admin,
    async metric(name, labels = {}) {
      return sumOf(await samples(), name, labels);
    },
    async outcomes() {
      const counts: Record<string, number> = {};
      for (const { name, labels, value } of await samples()) {
        if (name !== "evenkeel_requests_total") continue;
        const outcome = labels.outcome ?? "";
        counts[outcome] = (counts[outcome] ?? 0) + value;
      }
      return counts;
    },
  };
}

function urlOf(fake: FakeUpstream | string): string {
  return typeof fake === "string" ? fake : fake.url;
}

const IDLE = {
  requests: 0,
  waitingRequests: 0,
  waitingPrefillTokens: 0,
  waitingPrefillPairs: 0,
  waitingPromptTokens: 0,
  runningRequests: 0,
  contextTokens: 0,
  outputTokens: 0,
};

/** Waits until nothing is in flight, and checks that every number of every ledger account is then 0. */
export async function expectIdle(gateway: TestGateway): Promise<void> {
  const accounts = gateway.runtime.pools.flatMap(({ balancer }) => balancer.members.map(({ account }) => account));
  await until(() => accounts.every(({ requests }) => requests === 0));
  for (const account of accounts) expect(account).toMatchObject(IDLE);
  expect(await gateway.metric("evenkeel_requests_in_flight")).toBe(0);
}
