import {
  type Candidate,
  type Candidates,
  costOf,
  DEFAULT_HOLDING_LIMITS,
  type Endpoint,
  type EngineSignals,
  endpoint,
  Holding,
  type Lease,
  Ledger,
  Pool,
  type RequestProfile,
  ReuseOdds,
} from "../../src/core/index.ts";
import { engineSignals } from "./engine-signals.ts";

/** What a test says of an endpoint: its facts, and any of them may be left out. */
export type FleetEndpoint = Pick<Endpoint, "id"> & Partial<Endpoint>;

/** A real pool and ledger without a balancer: candidates in whatever state a policy is to meet. */
export class Fleet {
  readonly #ledger = new Ledger();
  readonly #pool = emptyPool(this.#ledger);

  constructor(endpoints: readonly [FleetEndpoint, ...FleetEndpoint[]]) {
    this.#pool.setEndpoints(endpoints.map(endpoint));
  }

  /** Every endpoint tells of its batch, as engines do that serve in turn. */
  reportBatches(): void {
    this.report({ runningRequests: 0 });
  }

  /** Every endpoint reports no more than `known`. */
  report(known: Partial<EngineSignals>): void {
    for (const member of this.#pool.members) member.report(engineSignals(known));
  }

  /** As before a decision: what is believed of their speeds is up to date. */
  get candidates(): Candidates {
    for (const { speed } of this.#pool.members) speed.update();
    return nonEmpty(this.#pool.members);
  }

  candidate(id: string): Candidate {
    const member = this.#pool.member(id);
    if (member === undefined) throw new RangeError(`no endpoint ${id}`);
    return member;
  }

  /** The request waits for its first token on `id`. */
  send(id: string, request: RequestProfile, nowMs = 0): Lease {
    const cached = this.candidate(id).cachedTokens(request);
    this.#pool.member(id)?.mirror.enter(request.prefix, request.promptTokens, nowMs);
    return this.#ledger.open(id, costOf(request, cached), request.output, nowMs);
  }

  /** The request is past its first token on `id`. */
  run(id: string, request: RequestProfile, nowMs = 0): Lease {
    const lease = this.send(id, request, nowMs);
    lease.firstToken(nowMs);
    return lease;
  }
}

/** A pool without endpoints, on a ledger of its own unless the test brings one. */
export function emptyPool(ledger: Ledger = new Ledger()): Pool {
  return new Pool(ledger, new Holding(DEFAULT_HOLDING_LIMITS), new ReuseOdds());
}

/** `items`, which the test knows not to be empty. */
export function nonEmpty<Item>(items: readonly Item[]): readonly [Item, ...Item[]] {
  const [first, ...rest] = items;
  if (first === undefined) throw new RangeError("empty list");
  return [first, ...rest];
}

/** How often each name occurs; names of `ids` that do not occur count 0. */
export function tally(names: Iterable<string>, ids: readonly string[] = []): Record<string, number> {
  const counts: Record<string, number> = Object.fromEntries(ids.map((id) => [id, 0]));
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

/** What `create` returns for 0 up to `count` - 1, in order. */
export function times<Item>(count: number, create: (index: number) => Item): Item[] {
  return Array.from({ length: count }, (_, index) => create(index));
}
