import {
  type Balancer,
  type Decision,
  type Lease,
  type Release,
  type RequestProfile,
  requestProfile,
  type Ticket,
} from "../../src/core/index.ts";

/** What a request of a test asks for. */
export interface Asked extends Partial<RequestProfile> {
  readonly promptTokens: number;
  readonly outputTokens: number;
}

/** One request, and how it fares. */
export interface Served {
  readonly asked: Asked;
  readonly arrivedAtMs: number;
  ticket: Ticket | undefined;
  sentAtMs: number | undefined;
  endedAtMs: number | undefined;
  refused: string | undefined;
  /** Tokens of its prompt and its answer that were computed. */
  promptTokens: number;
  outputTokens: number;
}

/** Endpoints that give every running request a token each step, driven by a balancer under a manual clock. */
export class Serving {
  readonly balancer: Balancer;
  readonly all: Served[] = [];
  nowMs = 0;
  readonly #running = new Map<Lease, Served>();

  constructor(balancer: Balancer) {
    this.balancer = balancer;
  }

  get running(): number {
    return this.#running.size;
  }

  ask(asked: Asked): Served {
    const { outputTokens: _, ...known } = asked;
    const served: Served = {
      asked,
      arrivedAtMs: this.nowMs,
      ticket: undefined,
      sentAtMs: undefined,
      endedAtMs: undefined,
      refused: undefined,
      promptTokens: 0,
      outputTokens: 0,
    };
    this.all.push(served);
    const decision = this.balancer.decide(requestProfile(known), this.nowMs);
    this.#act(served, decision);
    if (decision.kind === "held") this.#release(decision.displaced);
    return served;
  }

  leave(served: Served): void {
    if (served.ticket !== undefined) this.#release(this.balancer.leave(served.ticket, this.nowMs));
    served.ticket = undefined;
  }

  /** Time passes, then every running request gets a token; those that have all of theirs end. */
  step(stepMs: number): void {
    this.nowMs += stepMs;
    const wakeMs = this.balancer.nextWakeMs(this.nowMs) ?? Number.POSITIVE_INFINITY;
    if (wakeMs <= this.nowMs) this.#release(this.balancer.tick(this.nowMs));
    for (const [lease, served] of [...this.#running]) {
      served.outputTokens++;
      if (lease.isRunning) this.balancer.progress(lease, 1, this.nowMs);
      else this.#release(this.balancer.firstToken(lease, this.nowMs));
      if (served.outputTokens >= served.asked.outputTokens) this.end(lease, served);
    }
  }

  end(lease: Lease, served: Served): void {
    this.#running.delete(lease);
    served.endedAtMs = this.nowMs;
    const outcome = {
      kind: "completed",
      promptTokens: served.promptTokens,
      outputTokens: served.outputTokens,
    } as const;
    this.#release(this.balancer.finish(lease, outcome, this.nowMs));
  }

  #release(releases: readonly Release[]): void {
    for (const { ticket, decision } of releases) this.#act(ticket.holder as Served, decision);
  }

  #act(served: Served, decision: Decision): void {
    served.ticket = undefined;
    if (decision.kind === "held") {
      served.ticket = decision.ticket;
      decision.ticket.holder = served;
    } else if (decision.kind === "refused") served.refused = decision.reason;
    else {
      served.sentAtMs = this.nowMs;
      served.promptTokens = served.asked.promptTokens;
      this.#running.set(decision.lease, served);
    }
  }
}
