import type { Balancer, Endpoint } from "../core/index.ts";
import type { EngineObserver } from "./engine-model.ts";
import type { EngineSpec } from "./fleet-spec.ts";
import type { Job } from "./job.ts";
import type { VirtualClock } from "./live-signals.ts";
import type { EndpointSample } from "./result.ts";
import { SimulatedEndpoint } from "./simulated-endpoint.ts";

/** The endpoints of a simulation, those included that join later. */
export class SimulatedFleet {
  readonly endpoints: readonly SimulatedEndpoint[];
  /** Most tokens that prompt and answer of a request may have together: what fits the smallest of the engines. */
  readonly contextTokens: number;
  readonly #byId: ReadonlyMap<string, SimulatedEndpoint>;
  /** In the pool are the first so many. */
  #members = 0;

  /** @param firstSource Where the first endpoint's events stand on the agenda; the others follow. */
  constructor(
    specs: readonly EngineSpec[],
    firstSource: number,
    blockTokens: number,
    clock: Readonly<VirtualClock>,
    observer: EngineObserver<Job>,
  ) {
    this.endpoints = specs.map((spec, i) => new SimulatedEndpoint(spec, firstSource + i, blockTokens, clock, observer));
    this.contextTokens = Math.min(...this.endpoints.map(({ capacityTokens }) => capacityTokens));
    this.#byId = new Map(this.endpoints.map((endpoint) => [endpoint.id, endpoint]));
  }

  /** The next `count` join the pool. @returns them. */
  join(count: number): readonly SimulatedEndpoint[] {
    this.#members += count;
    return this.endpoints.slice(this.#members - count, this.#members);
  }

  /** The pool as a balancer is told of it. */
  get pool(): readonly Endpoint[] {
    return this.endpoints.slice(0, this.#members).map(({ facts }) => facts);
  }

  /** @throws when there is no such endpoint. */
  get(id: string): SimulatedEndpoint {
    const endpoint = this.#byId.get(id);
    if (endpoint === undefined) throw new RangeError(`there is no endpoint "${id}"`);
    return endpoint;
  }

  preemptions(nowMs: number): number {
    return this.endpoints.reduce((sum, endpoint) => sum + endpoint.preemptions(nowMs), 0);
  }

  sample(balancers: readonly Balancer[], atMs: number): readonly EndpointSample[] {
    const held = new Map<string, number>();
    for (const { endpoint, held: line } of balancers.flatMap(({ members }) => members)) {
      held.set(endpoint.id, (held.get(endpoint.id) ?? 0) + line.own(atMs).requests);
    }
    return this.endpoints.map((endpoint) => endpoint.sample(atMs, held.get(endpoint.id) ?? 0));
  }
}
