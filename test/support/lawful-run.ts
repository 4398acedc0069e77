import fc from "fast-check";
import { expect } from "vitest";
import {
  type Availability,
  Balancer,
  type BalancerOptions,
  type Decision,
  endpoint,
  type Lease,
  type Member,
  type Observation,
  type Outcome,
  type Priority,
  type Release,
  type RequestProfile,
  requestProfile,
  seededRandom,
  type Ticket,
  takesTraffic,
} from "../../src/core/index.ts";
import { engineSignals, reportBatches } from "./engine-signals.ts";

export const IDS: string[] = ["a", "b", "c", "d"];

/** So little that bounds are met all the time. */
const HOLDING = { maxRequests: 4, maxBytes: 20_000, maxWaitMs: 3000, promoteAfterMs: 500 };
/** So little that endpoints are out, and cold, all the time. */
const FAULTS = { ejection: { failures: 2, baseMs: 300, maxMs: 1000, minRequests: 4 }, slowStartMs: 600 };

/** Something that happens to a balancer. */
export type Event =
  | {
      readonly arrive: number;
      readonly known: Partial<RequestProfile>;
      readonly tried: readonly string[];
      /** How long ago it came first: it failed elsewhere since. */
      readonly agoMs: number;
    }
  | { readonly firstToken: number }
  | { readonly progress: number; readonly tokens: number }
  | { readonly finish: number; readonly kind: Outcome["kind"] }
  /** What its answer says of the endpoint. */
  | { readonly tell: number; readonly told: "succeeded" | "failed" | "neutral" | "busy" }
  | { readonly leave: number }
  | { readonly pass: number }
  | { readonly wake: true }
  | {
      readonly pool: readonly string[];
      readonly url: string;
      readonly weight: number;
      readonly maxRequests: number | undefined;
    }
  | { readonly observe: Observation };

const anyId = fc.constantFrom(...IDS);
/** Of an endpoint's requests in flight. */
export const anyCap: fc.Arbitrary<number | undefined> = fc.constantFrom(undefined, undefined, 1, 2, 5);
const anyModels = fc.constantFrom(undefined, new Set(["x"]), new Set(["x", "y"]));

const anyPrefix = fc.option(
  fc.record({ head: fc.nat(3), blocks: fc.integer({ min: 1, max: 40 }) }).map(({ head, blocks }) => ({
    hashes: Array.from({ length: blocks }, (_, depth) => 1000 * head + depth),
    tokensPerBlock: 64,
  })),
  { nil: undefined },
);

const anyArrival = fc.record({
  arrive: fc.constantFrom(10, 1000, 3000, 12_000),
  known: fc.record({
    model: fc.constantFrom("x", "x", "y", ""),
    isStreaming: fc.constantFrom(true, true, false),
    prefix: anyPrefix,
    tenant: fc.constantFrom(undefined, "one", "two"),
    priority: fc.constantFrom<Priority[]>("low", "normal", "normal", "high"),
    patienceMs: fc.constantFrom(undefined, undefined, 0, 100, 1000, 9000),
  }),
  agoMs: fc.constantFrom(0, 0, 0, 600, 2000),
  tried: fc.oneof({ weight: 5, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: fc.subarray(IDS) }),
});

const anyObservation: fc.Arbitrary<Observation> = fc.oneof(
  fc.record({
    kind: fc.constant("availability" as const),
    endpointId: anyId,
    availability: fc.constantFrom<Availability[]>("ready", "ready", "down", "loading"),
  }),
  fc.record({ kind: fc.constant("draining" as const), endpointId: anyId, isDraining: fc.boolean() }),
  fc.record({ kind: fc.constant("restarted" as const), endpointId: anyId }),
  fc.record({ kind: fc.constant("models" as const), endpointId: anyId, models: anyModels }),
  fc.record({
    kind: fc.constant("signals" as const),
    endpointId: anyId,
    signals: fc.constantFrom(3000, 20_000).map((kvCapacityTokens) => engineSignals({ kvCapacityTokens })),
  }),
);

export const anyEvent: fc.Arbitrary<Event> = fc.oneof(
  { weight: 12, arbitrary: anyArrival },
  { weight: 4, arbitrary: fc.record({ firstToken: fc.nat() }) },
  { weight: 3, arbitrary: fc.record({ progress: fc.nat(), tokens: fc.nat(50) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      finish: fc.nat(),
      kind: fc.constantFrom<Outcome["kind"][]>("completed", "failed", "aborted"),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      tell: fc.nat(),
      told: fc.constantFrom(
        "succeeded" as const,
        "failed" as const,
        "failed" as const,
        "neutral" as const,
        "busy" as const,
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ leave: fc.nat() }) },
  { weight: 3, arbitrary: fc.record({ pass: fc.nat(400) }) },
  { weight: 2, arbitrary: fc.constant({ wake: true as const }) },
  {
    weight: 1,
    arbitrary: fc.record({
      pool: fc.subarray(IDS),
      url: fc.constantFrom("http://one", "http://one", "http://two"),
      weight: fc.constantFrom(1, 1, 0),
      maxRequests: anyCap,
    }),
  },
  { weight: 2, arbitrary: fc.record({ observe: anyObservation }) },
);

/** Tells a balancer what happens, keeps its own account of every request, and compares. */
export class LawfulRun {
  readonly #balancer: Balancer;
  readonly #held = new Set<Ticket>();
  readonly #flying = new Set<Lease>();
  #nowMs = 0;
  /** When the balancer was last told the time. */
  #toldMs = 0;
  /** How often each thing became of a request. */
  readonly seen: Record<string, number> = {};
  readonly #waitsForCapsAlone: boolean;

  constructor(ids: readonly string[], maxRequests: number | undefined, setup: Omit<BalancerOptions, "endpoints">) {
    const endpoints = ids.map((id) => endpoint({ id, url: "http://one", maxRequests }));
    this.#balancer = new Balancer({ ...setup, ...FAULTS, endpoints, random: seededRandom(1), holding: HOLDING });
    reportBatches(this.#balancer);
    this.#waitsForCapsAlone = setup.policy === "least_connections";
  }

  happen(event: Event): void {
    const balancer = this.#balancer;
    if ("arrive" in event) {
      const request = requestProfile({ promptTokens: event.arrive, expectedOutputTokens: 100, ...event.known });
      const decision = balancer.decide(request, this.#nowMs, event.tried, event.arrive, this.#nowMs - event.agoMs);
      this.#decided(decision);
      if (decision.kind === "held") this.#released(decision.displaced);
    } else if ("firstToken" in event) {
      const lease = nth(this.#flying, event.firstToken);
      if (lease !== undefined) this.#released(balancer.firstToken(lease, this.#nowMs));
    } else if ("progress" in event) {
      const lease = nth(this.#flying, event.progress);
      if (lease !== undefined) balancer.progress(lease, event.tokens, this.#nowMs);
    } else if ("finish" in event) {
      const lease = nth(this.#flying, event.finish);
      if (lease !== undefined) this.#finish(lease, event.kind);
    } else if ("tell" in event) {
      const lease = nth(this.#flying, event.tell);
      if (lease !== undefined) this.#tell(lease, event.told);
    } else if ("leave" in event) {
      const ticket = nth(this.#held, event.leave);
      if (ticket === undefined) return;
      this.#held.delete(ticket);
      this.#released(balancer.leave(ticket, this.#nowMs));
      law(balancer.leave(ticket, this.#nowMs).length === 0, "who left is not heard of again");
    } else if ("pass" in event) this.#nowMs += event.pass;
    else if ("wake" in event) this.#wake();
    else if ("pool" in event) {
      const { pool, url, weight, maxRequests } = event;
      const endpoints = pool.map((id, index) => endpoint({ id, url, weight: index === 0 ? weight : 1, maxRequests }));
      this.#released(balancer.setEndpoints(endpoints, this.#nowMs));
      this.#released(reportBatches(balancer, this.#nowMs));
    } else this.#released(balancer.observe(event.observe, this.#nowMs));
  }

  check(): void {
    const { members, heldRequests, heldBytes: toldBytes, heldByPriority } = this.#balancer;
    law(heldRequests === this.#held.size, "who is held is held once");
    law(heldRequests <= HOLDING.maxRequests, "no more are held than may be");
    const flying = countBy(this.#flying, ({ endpointId }) => endpointId);
    const held = countBy(this.#held, ({ place }) => place?.endpointId);
    let heldBytes = 0;
    for (const ticket of this.#held) {
      heldBytes += ticket.bodyBytes;
      const able = members.filter((member) => member.isFreeAt(this.#toldMs) && couldTake(member, ticket));
      law(
        able.every(({ account }) => account.requests > 0),
        "nobody waits while an idle endpoint could take it",
      );
      if (this.#waitsForCapsAlone)
        law(
          able.every((member) => this.#isFull(member)),
          "nobody waits while there is a place",
        );
    }
    law(heldBytes === toldBytes, "bytes are counted once");
    const priorities = countBy(this.#held, ({ request }) => request.priority);
    for (const [priority, count] of Object.entries(heldByPriority)) {
      law(count === (priorities.get(priority as Priority) ?? 0), "priorities are counted once");
    }
    law(heldBytes <= HOLDING.maxBytes, "no more bytes are held than may be");
    let placed = held.get(undefined) ?? 0;
    for (const member of members) {
      const { id } = member.endpoint;
      law(member.account.requests === (flying.get(id) ?? 0), "what is in flight is counted where it is");
      law(member.held.requests === (held.get(id) ?? 0), "who is held is in the line of its endpoint");
      placed += member.held.requests;
    }
    law(placed === this.#held.size, "nobody is held for an endpoint that left");
    for (const lease of this.#flying) law(lease.isOpen, "what is not over is in flight");
  }

  /** Ends whatever is in flight until nobody is held any more: then everything is as if nothing had been. */
  endAll(): void {
    while (this.#held.size + this.#flying.size > 0) {
      const lease = nth(this.#flying, 0);
      if (lease === undefined) throw new Error("broken: nobody is held while nothing is in flight");
      this.#nowMs += 10;
      this.#finish(lease, "completed");
      this.check();
    }
    for (const { account, held, mirror } of this.#balancer.members) {
      const sums = { waitingRequests: 0, runningRequests: 0, contextTokens: 0, outputTokens: 0 };
      const waiting = { waitingPrefillTokens: 0, waitingPrefillPairs: 0, waitingPromptTokens: 0 };
      expect(account).toMatchObject({ requests: 0, ...sums, ...waiting });
      expect(held.aheadOf(Number.POSITIVE_INFINITY, 0)).toEqual({ prefillTokens: 0, prefillPairs: 0 });
      // Whatever nobody uses can be let go of, and nothing else is there.
      mirror.trim(Number.POSITIVE_INFINITY);
      expect([mirror.sharedTokens, mirror.evictableTokens, mirror.size]).toEqual([0, 0, 0]);
    }
  }

  /** Nobody is spared for being cold: what its share is, only its pool knows. */
  #isFull({ account, endpoint: { maxRequests = Number.POSITIVE_INFINITY }, slowStart }: Member): boolean {
    return account.requests >= maxRequests || slowStart.warmthAt(this.#toldMs) < 1;
  }

  #tell(lease: Lease, told: "succeeded" | "failed" | "neutral" | "busy"): void {
    const { endpointId } = lease;
    const observation: Observation =
      told === "busy" ? { kind: told, endpointId, lease, retryAfterMs: 250 } : { kind: told, endpointId, lease };
    this.#released(this.#balancer.observe(observation, this.#nowMs));
  }

  /** Time moves to where the balancer wants to be told of it, and is told. */
  #wake(): void {
    const wakeMs = this.#balancer.nextWakeMs(this.#nowMs);
    if (wakeMs === undefined) {
      law(this.#held.size === 0, "time is told while somebody is held");
      return;
    }
    this.#nowMs = Math.max(this.#nowMs, wakeMs);
    const releases = this.#balancer.tick(this.#nowMs);
    this.#toldMs = this.#nowMs;
    this.#released(releases);
    const nextMs = this.#balancer.nextWakeMs(this.#nowMs) ?? Number.POSITIVE_INFINITY;
    law(releases.length > 0 || nextMs > this.#nowMs, "time that was told is not asked for again");
    for (const { arrivedAtMs, request } of this.#held) {
      const mostMs = Math.min(HOLDING.maxWaitMs, request.patienceMs ?? Number.POSITIVE_INFINITY);
      law(this.#nowMs < arrivedAtMs + mostMs, "nobody is held too long");
    }
  }

  #finish(lease: Lease, kind: Outcome["kind"]): void {
    this.#flying.delete(lease);
    this.#released(this.#balancer.finish(lease, { kind, outputTokens: lease.generatedTokens }, this.#nowMs));
    law(!lease.isOpen, "what is over is not in flight");
  }

  #decided(decision: Decision): void {
    const fate = decision.kind === "refused" ? decision.reason : decision.kind;
    this.seen[fate] = (this.seen[fate] ?? 0) + 1;
    if (decision.kind === "held") this.#held.add(decision.ticket);
    if (decision.kind === "refused") {
      law(decision.retryAfterMs >= 1000 && decision.retryAfterMs <= 60_000, "whoever is refused is told when to come");
    }
    if (decision.kind !== "routed") return;
    this.#flying.add(decision.lease);
    const { requests } = this.#member(decision.endpoint.id).account;
    law(requests <= (decision.endpoint.maxRequests ?? requests), "no endpoint is sent more than it may have");
  }

  #released(releases: readonly Release[]): void {
    for (const { ticket, decision } of releases) {
      law(this.#held.delete(ticket) && ticket.place === undefined, "who is released was held, and is not any more");
      const isNew = decision.kind === "refused" || !ticket.tried.includes(decision.endpoint.id);
      law(isNew, "nobody is sent where it failed before");
      this.#decided(decision);
    }
  }

  #member(id: string): Member {
    return this.#balancer.members.find((member) => member.endpoint.id === id) as Member;
  }
}

/** `expect` on each of a million checks would take longer than all else. */
function law(isKept: boolean, what: string): void {
  if (!isKept) throw new Error(`broken: ${what}`);
}

function countBy<Item, Key>(items: Iterable<Item>, keyOf: (item: Item) => Key): ReadonlyMap<Key, number> {
  const counts = new Map<Key, number>();
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1);
  return counts;
}

function couldTake(member: Member, { request, tried }: Ticket): boolean {
  const { endpoint, models, isDraining, availability } = member;
  const serves = request.model === "" || models === undefined || models.has(request.model);
  return serves && !isDraining && endpoint.weight > 0 && takesTraffic(availability) && !tried.includes(endpoint.id);
}

function nth<Item>(items: ReadonlySet<Item>, place: number): Item | undefined {
  return [...items][place % Math.max(1, items.size)];
}
