import type { Refused, Routed, Ticket } from "../core/index.ts";
import type { Clock, LiveBalancer } from "../runtime/index.ts";

/** One stay of a request at the balancer. Owns its ticket and, from the release until it is taken, its lease. */
export class Hold {
  /** The stay is over: by a release, or because the client left. */
  readonly ended: Promise<void>;
  readonly #balancer: LiveBalancer;
  readonly #ticket: Ticket;
  readonly #clock: Clock;
  #end: () => void = () => {};
  #decision: Routed | Refused | undefined;

  constructor(balancer: LiveBalancer, ticket: Ticket, clock: Clock) {
    this.#balancer = balancer;
    this.#ticket = ticket;
    this.#clock = clock;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  /** What was decided in the end; undefined: the client left, or nothing yet. */
  get decision(): Routed | Refused | undefined {
    return this.#decision;
  }

  /** Since it is held. */
  get elapsedMs(): number {
    return this.#clock.nowMs() - this.#ticket.heldAtMs;
  }

  release(decision: Routed | Refused): void {
    this.#decision = decision;
    this.#end();
  }

  /** The client left. It may do so in the very moment of the release, and then the lease is closed again. */
  leave(): void {
    const nowMs = this.#clock.nowMs();
    this.#balancer.leave(this.#ticket, nowMs);
    const { decision } = this;
    this.#decision = undefined;
    if (decision?.kind === "routed") this.#balancer.finish(decision.lease, { kind: "aborted" }, nowMs);
    this.#end();
  }
}
