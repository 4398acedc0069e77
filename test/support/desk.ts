import {
  Balancer,
  type BalancerOptions,
  endpoint,
  type Lease,
  type Member,
  type Observation,
  type Outcome,
  type Release,
  type RequestProfile,
  requestProfile,
  type Ticket,
} from "../../src/core/index.ts";
import { mustBeRouted } from "./decisions.ts";
import { reportBatches } from "./engine-signals.ts";
import { Script } from "./scripted-policy.ts";

export const COMPLETED: Outcome = { kind: "completed" };

/** A balancer, a clock, and what became of the requests it was asked about. */
export class Desk {
  readonly balancer: Balancer;
  nowMs = 0;

  /** @param maxRequests Of each endpoint. */
  constructor(ids: readonly string[], options: Omit<BalancerOptions, "endpoints">, maxRequests?: number) {
    this.balancer = new Balancer({ ...options, endpoints: ids.map((id) => endpoint({ id, maxRequests })) });
    reportBatches(this.balancer);
  }

  member(id: string): Member {
    const found = this.balancer.members.find((member) => member.endpoint.id === id);
    if (found === undefined) throw new RangeError(id);
    return found;
  }

  send(request: RequestProfile, tried: readonly string[] = []): Lease {
    return mustBeRouted(this.balancer.decide(request, this.nowMs, tried)).lease;
  }

  /** The request goes to `id`, whatever the policy thinks. */
  pin(id: string, request = requestOf(1)): Lease {
    const others = this.balancer.members.map((member) => member.endpoint.id).filter((other) => other !== id);
    return this.send(request, others);
  }

  hold(request: RequestProfile, tried: readonly string[] = []): Ticket {
    const decision = this.balancer.decide(request, this.nowMs, tried);
    if (decision.kind !== "held") throw new Error(decision.kind);
    return decision.ticket;
  }

  finish(lease: Lease): Outcomes {
    return outcomesOf(this.balancer.finish(lease, COMPLETED, this.nowMs));
  }

  firstToken(lease: Lease): Outcomes {
    return outcomesOf(this.balancer.firstToken(lease, this.nowMs));
  }

  observe(observation: Observation): Outcomes {
    return outcomesOf(this.balancer.observe(observation, this.nowMs));
  }

  tick(): Outcomes {
    return outcomesOf(this.balancer.tick(this.nowMs));
  }
}

/** Released tickets in order, each with the endpoint it goes to, or with the reason of its refusal. */
export type Outcomes = readonly (readonly [Ticket, string])[];

export function outcomesOf(releases: readonly Release[]): Outcomes {
  return releases.map(({ ticket, decision }) => [
    ticket,
    decision.kind === "routed" ? decision.endpoint.id : decision.reason,
  ]);
}

export function requestOf(promptTokens: number, known: Partial<RequestProfile> = {}): RequestProfile {
  return requestProfile({ promptTokens, expectedOutputTokens: 100, ...known });
}

/** Endpoints with one request in flight each, under a policy that does as the script says. */
export function busy(ids: readonly string[], options: Omit<BalancerOptions, "endpoints" | "policy"> = {}) {
  const script = new Script();
  const desk = new Desk(ids, { ...options, policy: script.policy() });
  const leases = Object.fromEntries(ids.map((id) => [id, desk.pin(id)]));
  const leaseAt = (id: string) => leases[id] as Lease;
  return { script, desk, leaseAt };
}
