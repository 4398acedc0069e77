import { fairOrder } from "../admission/index.ts";
import type { EndpointConfig, HealthConfig, PoolConfig } from "../config/index.ts";
import {
  type Account,
  Balancer,
  type BalancerChange,
  type EndpointHealth,
  type Observation,
  type Random,
} from "../core/index.ts";
import type { Clock } from "./clock.ts";
import { PoolDiscovery } from "./discovery/pool-discovery.ts";
import { EndpointMonitor } from "./endpoint-monitor.ts";
import { type EndpointChanges, EndpointOverlay } from "./endpoint-overlay.ts";
import { LiveBalancer } from "./live-balancer.ts";
import type { Log } from "./log.ts";
import type { Resolver } from "./resolver.ts";
import { isSameValue } from "./same-value.ts";

/** What a pool needs from the process around it. */
export interface PoolSurroundings {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly resolver: Resolver;
  readonly health: HealthConfig;
  /** Endpoints came, went or changed, or the last request of one that went is over. */
  readonly endpointsChanged: () => void;
  /** An endpoint's models became known or changed. */
  readonly modelsChanged: () => void;
}

/** An endpoint that left its pool while requests were running there. */
interface Leaving {
  readonly monitor: EndpointMonitor;
  readonly account: Account;
}

/** A pool that serves: its balancer, a monitor for each endpoint, and whoever says which endpoints there are. */
export class ServedPool {
  readonly name: string;
  readonly balancer: LiveBalancer;
  readonly #clock: Clock;
  readonly #monitors = new Map<string, EndpointMonitor>();
  readonly #leaving = new Map<string, Leaving>();
  readonly #overlay = new EndpointOverlay();
  readonly #discovery: PoolDiscovery;
  /** By endpoint id, as its engine lists them. */
  readonly #reportedModels = new Map<string, readonly string[]>();
  #config: PoolConfig;
  #surroundings: PoolSurroundings;
  #isRunning = false;

  constructor(config: PoolConfig, surroundings: PoolSurroundings) {
    this.name = config.name;
    this.#config = config;
    this.#surroundings = surroundings;
    this.#clock = surroundings.clock;
    this.#discovery = new PoolDiscovery(surroundings, () => this.#settle());
    this.#discovery.follow(config.discovery);
    const endpoints = this.#overlay.over(config.endpoints);
    const balancer = new Balancer({
      policy: config.policy.name,
      policyOptions: config.policy.options,
      endpoints,
      random: surroundings.random,
      holding: config.holding,
      whenFull: "hold",
      order: fairOrder(),
      ejection: surroundings.health.ejection,
      slowStartMs: surroundings.health.slowStartMs,
    });
    this.balancer = new LiveBalancer(balancer, this.#clock);
    this.#setEndpoints();
  }

  get config(): PoolConfig {
    return this.#config;
  }

  /** Endpoints that left the pool, with the requests that still run there. */
  get leaving(): readonly Leaving[] {
    return [...this.#leaving.values()];
  }

  /** @throws when there is no such endpoint: ids come from this pool's own decisions. */
  monitor(endpointId: string): EndpointMonitor {
    const monitor = this.#find(endpointId);
    if (monitor === undefined) throw new RangeError(`no endpoint "${endpointId}" in pool "${this.name}"`);
    return monitor;
  }

  /** As `endpoint`; undefined: there is none, or not any more. One that left is found while something runs there. */
  find(endpointId: string): EndpointConfig | undefined {
    return this.#find(endpointId)?.endpoint;
  }

  endpoint(endpointId: string): EndpointConfig {
    return this.monitor(endpointId).endpoint;
  }

  health(endpointId: string): EndpointHealth {
    return this.monitor(endpointId).health;
  }

  /** Whether an endpoint that new requests may go to was found well: by a probe or by an answered request. */
  get isReady(): boolean {
    return this.balancer.members.some(
      ({ availability, isDraining, endpoint }) => availability === "ready" && !isDraining && endpoint.weight > 0,
    );
  }

  /** Nothing is held here, and nothing runs at any of its endpoints. */
  get isIdle(): boolean {
    const accounts = [...this.balancer.members, ...this.leaving].map(({ account }) => account);
    return this.balancer.heldRequests === 0 && accounts.every(({ requests }) => requests === 0);
  }

  /** Looks for endpoints and watches them. While it runs it does nothing. */
  start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    for (const monitor of this.#monitors.values()) monitor.start();
    this.#discovery.start();
  }

  /** Holds nobody and watches nothing any more, and leaves no timer behind. What runs goes on until it is done. */
  async close(): Promise<void> {
    this.balancer.close();
    this.#isRunning = false;
    const stopped = [...this.#monitors.values()].map((monitor) => monitor.stop());
    await Promise.all([this.#discovery.stop(), ...stopped]);
  }

  /** Is as configured from now on. Endpoints that stay keep their work and everything learned of them. */
  reconfigure(config: PoolConfig, health: HealthConfig): void {
    const change = balancerChange(this.#config, config, health);
    this.#config = config;
    this.#surroundings = { ...this.#surroundings, health };
    this.balancer.reconfigure(change, this.#clock.nowMs());
    this.#discovery.follow(config.discovery);
    this.#settle();
  }

  /** Adds an endpoint, or changes the one with its id, until it is removed or the pool ends. */
  putEndpoint(endpoint: EndpointConfig): void {
    this.#overlay.put(endpoint);
    this.#settle();
  }

  /** What runs there finishes. The endpoint stays away, whatever configuration and discovery say, until it is put again. */
  removeEndpoint(endpointId: string): void {
    this.#overlay.remove(endpointId);
    this.#settle();
  }

  weighEndpoint(endpointId: string, weight: number): void {
    this.#overlay.weigh(endpointId, weight);
    this.#settle();
  }

  drainEndpoint(endpointId: string, isDraining: boolean): void {
    this.#overlay.drain(endpointId, isDraining);
    this.#settle();
  }

  get operatorChanges(): EndpointChanges {
    return this.#overlay.changes;
  }

  /** Undefined: there are none. */
  takeOperatorChanges(changes: EndpointChanges | undefined): void {
    const taken = changes ?? NO_CHANGES;
    if (isSameValue(this.#overlay.changes, taken)) return;
    this.#overlay.take(taken);
    this.#settle();
  }

  /** Lets go of endpoints that left and have nothing to do any more. */
  sweep(): void {
    let isChanged = false;
    for (const [id, { account }] of this.#leaving) {
      if (account.requests > 0) continue;
      this.#leaving.delete(id);
      this.#reportedModels.delete(id);
      isChanged = true;
    }
    if (isChanged) this.#surroundings.endpointsChanged();
  }

  #find(endpointId: string): EndpointMonitor | undefined {
    return this.#monitors.get(endpointId) ?? this.#leaving.get(endpointId)?.monitor;
  }

  #settle(): void {
    this.#setEndpoints();
    this.#surroundings.endpointsChanged();
    this.#surroundings.modelsChanged();
  }

  /** Monitors first: what is released by the change is sent to endpoints that have theirs. */
  #setEndpoints(): void {
    const endpoints = this.#overlay.over([...this.#config.endpoints, ...this.#discovery.endpoints]);
    const accounts = new Map(this.balancer.members.map(({ endpoint, account }) => [endpoint.id, account]));
    const added = endpoints.map(({ id }) => id).filter((id) => !this.#monitors.has(id));
    const kept = new Set(endpoints.map(({ id }) => id));
    const removed = [...this.#monitors.keys()].filter((id) => !kept.has(id));
    for (const id of removed) this.#letGo(id, accounts.get(id));
    for (const endpoint of endpoints) this.#watch(endpoint);
    if (this.#isRunning && added.length + removed.length > 0) {
      this.#surroundings.log.info({ pool: this.name, added, removed }, "endpoints came or went");
    }
    const known = endpoints.flatMap((endpoint) => this.#knownOf(endpoint));
    this.balancer.setEndpoints(endpoints, known, this.#clock.nowMs());
    if (this.#isRunning) for (const monitor of this.#monitors.values()) monitor.start();
  }

  /** An endpoint that left and comes back before it is done is watched as before. */
  #watch(endpoint: EndpointConfig): void {
    const { id, url } = endpoint;
    const leaving = this.#leaving.get(id);
    const kept = this.#monitors.get(id) ?? (leaving?.account.requests ? leaving.monitor : undefined);
    this.#leaving.delete(id);
    if (kept !== undefined && kept.endpoint.url === url) {
      kept.reconfigure(endpoint, this.#surroundings.health);
      this.#monitors.set(id, kept);
      return;
    }
    void kept?.stop();
    this.#reportedModels.delete(id);
    const modelsReported = (names: readonly string[]): void => this.#noteModels(id, names);
    this.#monitors.set(id, new EndpointMonitor(endpoint, this.balancer, { ...this.#surroundings, modelsReported }));
  }

  #letGo(id: string, account: Account | undefined): void {
    const monitor = this.monitor(id);
    void monitor.stop();
    this.#monitors.delete(id);
    if (account !== undefined && account.requests > 0) this.#leaving.set(id, { monitor, account });
    else this.#reportedModels.delete(id);
  }

  /** What the balancer is to know of the endpoint before anything is sent there. */
  #knownOf(endpoint: EndpointConfig): readonly Observation[] {
    const { id } = endpoint;
    return [
      { kind: "models", endpointId: id, models: this.#modelsOf(endpoint) },
      { kind: "draining", endpointId: id, isDraining: this.#overlay.isDrained(id) },
    ];
  }

  #modelsOf({ id, models }: EndpointConfig): ReadonlySet<string> | undefined {
    if (models !== undefined) return new Set(models);
    const reported = this.#reportedModels.get(id);
    if (reported === undefined) return undefined;
    const configured = this.#config.models;
    // An engine that lists none of the configured names goes by one of its own, llama.cpp by its file's, and takes any.
    const isTelling = configured === undefined || reported.some((name) => configured.includes(name));
    return isTelling ? new Set(reported) : undefined;
  }

  #noteModels(id: string, reported: readonly string[]): void {
    const endpoint = this.#monitors.get(id)?.endpoint;
    if (endpoint === undefined || reported.length === 0) return;
    this.#reportedModels.set(id, reported);
    if (endpoint.models !== undefined) return;
    this.balancer.observe({ kind: "models", endpointId: id, models: this.#modelsOf(endpoint) }, this.#clock.nowMs());
    this.#surroundings.modelsChanged();
  }
}

const NO_CHANGES: EndpointChanges = { given: [], removed: [], weights: new Map(), drained: [] };

/** All that its balancer takes on. A policy that stays the same keeps its state. */
function balancerChange(before: PoolConfig, { policy, holding }: PoolConfig, health: HealthConfig): BalancerChange {
  const change = { holding, ejection: health.ejection, slowStartMs: health.slowStartMs ?? 0 };
  if (isSameValue(before.policy, policy)) return change;
  return { ...change, policy: policy.name, policyOptions: policy.options };
}
