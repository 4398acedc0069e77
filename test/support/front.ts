import {
  Balancer,
  type BalancerOptions,
  type Decision,
  type Endpoint,
  endpoint,
  type Member,
  type Refused,
  type RequestProfile,
  type Routed,
  requestProfile,
} from "../../src/core/index.ts";
import { mustBeRouted } from "./decisions.ts";

/** What is told of a request at its end. */
export type Told = "succeeded" | "failed" | "neutral" | "busy" | "nothing";

const REQUEST = requestProfile({ promptTokens: 100, expectedOutputTokens: 10 });

/** A balancer as a gateway uses it that tells what became of its requests; least connections, unless a test says more. */
export class Front {
  nowMs = 0;
  readonly balancer: Balancer;

  constructor(
    endpoints: readonly (Pick<Endpoint, "id"> & Partial<Endpoint>)[],
    options: Omit<BalancerOptions, "endpoints"> = {},
  ) {
    this.balancer = new Balancer({ policy: "least_connections", ...options, endpoints: endpoints.map(endpoint) });
  }

  member(id: string): Member {
    const member = this.balancer.member(id);
    if (member === undefined) throw new RangeError(id);
    return member;
  }

  decide(tried: readonly string[] = [], request: RequestProfile = REQUEST): Decision {
    return this.balancer.decide(request, this.nowMs, tried);
  }

  send(tried: readonly string[] = [], request: RequestProfile = REQUEST): Routed {
    return mustBeRouted(this.decide(tried, request));
  }

  refuse(tried: readonly string[] = []): Refused {
    const decision = this.decide(tried);
    if (decision.kind !== "refused") throw new Error(decision.kind);
    return decision;
  }

  /** Which endpoints would be weighed for a request, and why the others would not. */
  seen(request: RequestProfile = REQUEST): Record<string, string> {
    const { considered, excluded } = this.balancer.explain(request, this.nowMs).explanation;
    return Object.fromEntries([
      ...considered.map(({ endpoint: id }) => [id, "in"] as const),
      ...excluded.map(({ endpoint: id, why }) => [id, why] as const),
    ]);
  }

  end({ endpoint: { id }, lease }: Routed, told: Told, retryAfterMs?: number): void {
    const { nowMs } = this;
    if (told === "busy") this.balancer.observe({ kind: told, endpointId: id, lease, retryAfterMs }, nowMs);
    else if (told !== "nothing") this.balancer.observe({ kind: told, endpointId: id, lease }, nowMs);
    this.balancer.finish(lease, { kind: told === "succeeded" ? "completed" : "failed" }, nowMs);
  }

  /** A request that goes to `id`, which has to be one that takes requests; ends at once. */
  play(id: string, ...all: readonly Told[]): void {
    const others = this.balancer.members.map((member) => member.endpoint.id).filter((other) => other !== id);
    for (const told of all) this.end(this.send(others), told);
  }

  /** Ejects `id`, as far as the pool lets it be. */
  break(id: string): void {
    this.play(id, "failed", "failed", "failed", "failed", "failed");
  }
}
