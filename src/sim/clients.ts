import { MinHeap } from "./min-heap.ts";
import type { FollowUp, Workload, WorkloadRequest } from "./workload/workload.ts";

/** A request that a client will send. */
interface Expected {
  readonly atMs: number;
  /** Breaks ties: the client that was free first goes first. */
  readonly order: number;
  readonly request: WorkloadRequest;
}

/** Everyone who sends requests: those that come at a time of their own, and the next turns of those that wait for answers. */
export class Clients {
  readonly #workload: Workload;
  readonly #followUps = new MinHeap<Expected>(isSooner);
  #nextArrival = 0;
  #followedUp = 0;
  #sent = 0;

  constructor(workload: Workload) {
    this.#workload = workload;
  }

  /** When the next request comes; infinite: none does, unless somebody gets an answer. */
  get firstAtMs(): number {
    return Math.min(this.#arrivalAtMs, this.#followUps.peek()?.atMs ?? Number.POSITIVE_INFINITY);
  }

  /** Requests that came so far. */
  get sent(): number {
    return this.#sent;
  }

  /** The request that comes next; undefined: none does. */
  take(): WorkloadRequest | undefined {
    const atMs = this.firstAtMs;
    if (atMs === Number.POSITIVE_INFINITY) return undefined;
    this.#sent++;
    if (this.#arrivalAtMs === atMs) return this.#workload.arrivals[this.#nextArrival++]?.request;
    return this.#followUps.pop()?.request;
  }

  /** A client is free again at `nowMs`, and goes on. */
  goOn({ thinkMs, request }: FollowUp, nowMs: number): void {
    this.#followUps.push({ atMs: nowMs + thinkMs, order: this.#followedUp++, request });
  }

  get #arrivalAtMs(): number {
    return this.#workload.arrivals[this.#nextArrival]?.atMs ?? Number.POSITIVE_INFINITY;
  }
}

function isSooner(a: Expected, b: Expected): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** All requests of a workload, those of sessions included. */
export function countRequests({ arrivals }: Workload): number {
  let requests = 0;
  for (const arrival of arrivals) {
    for (let turn: WorkloadRequest | undefined = arrival.request; turn; turn = turn.next?.request) requests++;
  }
  return requests;
}
