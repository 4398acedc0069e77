import { pino } from "pino";
import { afterEach, describe, expect, it } from "vitest";
import { testConfig } from "../../test/support/test-config.ts";
import { Balancer, type Routed, requestProfile, seededRandom } from "../core/index.ts";
import { EndpointMonitor } from "./endpoint-monitor.ts";
import { LiveBalancer } from "./live-balancer.ts";
import { systemResolver } from "./resolver.ts";

const REQUEST = requestProfile({ promptTokens: 10 });
/** Nobody listens there; probes are not what is tested. */
const { health, pools } = testConfig(["http://127.0.0.1:9", "http://127.0.0.1:9/b"]);
const ENDPOINTS = pools[0]?.endpoints ?? [];
const [WATCHED, OTHER] = ENDPOINTS.map(({ id }) => id) as [string, string];

class Watch {
  nowMs = 1_000;
  readonly balancer: LiveBalancer;
  readonly monitor: EndpointMonitor;
  readonly logged: Record<string, unknown>[] = [];

  constructor() {
    const clock = { nowMs: () => this.nowMs };
    this.balancer = new LiveBalancer(new Balancer({ policy: "round_robin", endpoints: ENDPOINTS }), clock);
    const log = pino({ base: null, timestamp: false }, { write: (line) => this.logged.push(JSON.parse(line)) });
    const random = seededRandom(1);
    const surroundings = { clock, random, log, resolver: systemResolver, health, modelsReported: () => {} };
    this.monitor = new EndpointMonitor(ENDPOINTS[0] as never, this.balancer, surroundings);
  }

  send(): Routed {
    const holder = { bodyBytes: 0, released: () => {} };
    const decision = this.balancer.decide(REQUEST, this.nowMs, [OTHER], holder);
    if (decision.kind !== "routed") throw new Error(decision.kind);
    return decision;
  }

  end({ lease }: Routed): void {
    this.balancer.finish(lease, { kind: "failed" }, this.nowMs);
  }

  get why(): string | undefined {
    return this.balancer
      .explain(REQUEST, this.nowMs, 0)
      .explanation.excluded.find(({ endpoint }) => endpoint === WATCHED)?.why;
  }
}

let watch: Watch;
const start = (): Watch => {
  watch = new Watch();
  return watch;
};
afterEach(() => watch.monitor.stop());

describe("the monitor of an endpoint", () => {
  it("has it ejected for what its requests failed of, says so once, and says when it is back", () => {
    const { monitor, logged } = start();
    for (let i = 0; i < 5; i++) {
      const routed = watch.send();
      monitor.failed(routed.lease, "answered with 500");
      watch.end(routed);
    }
    expect(watch.why).toBe("ejected");
    expect(logged).toEqual([
      { level: 40, endpoint: WATCHED, reason: "answered with 500", forMs: 5_000, msg: "endpoint is ejected" },
    ]);
    watch.nowMs += 5_000;
    const trial = watch.send();
    monitor.succeeded(trial.lease);
    watch.end(trial);
    expect(watch.why).toBeUndefined();
    expect(logged.slice(1)).toMatchObject([
      { level: 30, msg: "endpoint is ready" },
      { level: 30, msg: "endpoint takes requests again" },
    ]);
  });

  it("counts a connection that was not found for both its health and its breaker", () => {
    const { monitor } = start();
    for (let i = 0; i < 5; i++) monitor.succeeded(watch.send().lease);
    monitor.connectFailed(watch.send().lease, "ECONNREFUSED");
    monitor.connectFailed(watch.send().lease, "ECONNREFUSED");
    expect([watch.why, monitor.refusesSinceMs]).toEqual([undefined, undefined]);
    const [third, fourth] = [watch.send(), watch.send()];
    monitor.connectFailed(third.lease, "ECONNREFUSED");
    monitor.connectFailed(fourth.lease, "ECONNREFUSED");
    expect([watch.why, monitor.refusesSinceMs]).toEqual(["down", 1_000]);
  });

  it("ends a trial that found no connection", () => {
    const { monitor } = start();
    for (let i = 0; i < 5; i++) monitor.failed(watch.send().lease, "answered with 500");
    watch.nowMs += 5_000;
    monitor.connectFailed(watch.send().lease, "ECONNREFUSED");
    watch.nowMs += 9_999;
    expect(watch.why).toBe("ejected");
    watch.nowMs += 1;
    expect(watch.why).toBeUndefined();
  });

  it("passes on a pause that it asks for, and changes nothing for a client's fault", () => {
    const { monitor, logged } = start();
    monitor.busy(watch.send().lease, 2_000);
    expect(watch.why).toBe("busy");
    watch.nowMs += 2_000;
    for (let i = 0; i < 50; i++) monitor.neutral(watch.send().lease);
    expect([watch.why, monitor.health.availability, logged]).toEqual([undefined, "unknown", []]);
  });

  it("says nothing any more once it is stopped", async () => {
    const { monitor } = start();
    await monitor.stop();
    for (let i = 0; i < 5; i++) monitor.failed(watch.send().lease, "answered with 500");
    expect(watch.why).toBeUndefined();
  });
});
