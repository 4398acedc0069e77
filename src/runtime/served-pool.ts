import type { EndpointConfig, HealthConfig, PoolConfig } from "../config/index.ts";
import { Balancer, type EndpointHealth, type Random } from "../core/index.ts";
import type { Clock } from "./clock.ts";
import { EndpointMonitor } from "./endpoint-monitor.ts";
import { LiveBalancer } from "./live-balancer.ts";
import type { Log } from "./log.ts";

/** What a pool needs from the process around it. */
export interface PoolSurroundings {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly health: HealthConfig;
  /** An endpoint's models became known or changed. */
  readonly modelsChanged: () => void;
}

/** A pool that serves: its balancer, and a monitor for each endpoint. */
export class ServedPool {
  readonly name: string;
  readonly config: PoolConfig;
  readonly balancer: LiveBalancer;
  readonly #clock: Clock;
  readonly #monitors: ReadonlyMap<string, EndpointMonitor>;
  readonly #modelsChanged: () => void;

  constructor(config: PoolConfig, surroundings: PoolSurroundings) {
    this.name = config.name;
    this.config = config;
    this.#clock = surroundings.clock;
    const balancer = new Balancer({
      policy: config.policy.name,
      policyOptions: config.policy.options,
      endpoints: config.endpoints,
      random: surroundings.random,
      holding: config.holding,
    });
    this.balancer = new LiveBalancer(balancer, this.#clock);
    for (const { id, models } of config.endpoints) {
      if (models !== undefined) this.#observeModels(id, new Set(models));
    }
    this.#modelsChanged = surroundings.modelsChanged;
    this.#monitors = new Map(
      config.endpoints.map((endpoint) => {
        const modelsReported = (names: readonly string[]): void => this.#noteModels(endpoint, names);
        return [endpoint.id, new EndpointMonitor(endpoint, this.balancer, { ...surroundings, modelsReported })];
      }),
    );
  }

  /** @throws when there is no such endpoint: ids come from this pool's own decisions. */
  monitor(endpointId: string): EndpointMonitor {
    const monitor = this.#monitors.get(endpointId);
    if (monitor === undefined) throw new RangeError(`no endpoint "${endpointId}" in pool "${this.name}"`);
    return monitor;
  }

  endpoint(endpointId: string): EndpointConfig {
    return this.monitor(endpointId).endpoint;
  }

  health(endpointId: string): EndpointHealth {
    return this.monitor(endpointId).health;
  }

  /** Whether an endpoint was found well: by a probe or by an answered request. */
  get isReady(): boolean {
    return this.balancer.members.some(({ availability }) => availability === "ready");
  }

  start(): void {
    for (const monitor of this.#monitors.values()) monitor.start();
  }

  async stop(): Promise<void> {
    this.balancer.close();
    await Promise.all([...this.#monitors.values()].map((monitor) => monitor.stop()));
  }

  #noteModels({ id, models }: EndpointConfig, reported: readonly string[]): void {
    if (models !== undefined || reported.length === 0) return;
    const configured = this.config.models;
    // An engine that lists none of the configured names goes by one of its own, llama.cpp by its file's, and takes any.
    const isTelling = configured === undefined || reported.some((name) => configured.includes(name));
    this.#observeModels(id, isTelling ? new Set(reported) : undefined);
    this.#modelsChanged();
  }

  #observeModels(endpointId: string, models: ReadonlySet<string> | undefined): void {
    this.balancer.observe({ kind: "models", endpointId, models }, this.#clock.nowMs());
  }
}
