import { type Balancer, type Decision, type Release, type Routed, seededRandom } from "../core/index.ts";
import { Agenda } from "./agenda.ts";
import { Clients, countRequests } from "./clients.ts";
import type { EngineObserver } from "./engine-model.ts";
import { Job, Journey } from "./job.ts";
import type { VirtualClock } from "./live-signals.ts";
import { Replica } from "./replica.ts";
import { ReplicaDealer } from "./replica-dealer.ts";
import type { SimulationResult } from "./result.ts";
import { SendLine } from "./send-line.ts";
import type { SimulatedEndpoint } from "./simulated-endpoint.ts";
import { SimulatedFleet } from "./simulated-fleet.ts";
import {
  DEFAULT_BLOCK_TOKENS,
  DEFAULT_SEND_DELAY_MS,
  type Replicating,
  type SimulationOptions,
} from "./simulation-options.ts";
import { TimelineRecorder } from "./timeline-recorder.ts";
import type { Workload, WorkloadRequest } from "./workload/workload.ts";

/** What came out, and how many of the requests went which way: each is counted once. */
export interface Simulation extends SimulationResult {
  readonly fates: Readonly<Fates>;
}

/** Numbers of requests by what became of them. */
export interface Fates {
  ended: number;
  /** The balancer sent them nowhere. */
  refused: number;
  /** Longer than the context window, which is the KV cache of the smallest engine. */
  oversized: number;
  /** Their endpoint died while it answered. */
  lost: number;
  /** Held, or at an engine, when nothing more could happen. */
  unfinished: number;
}

/**
 * Sends a workload through balancers to a fleet under virtual time. Discrete events: each part says when it does
 * something next, and the earliest does it. The same options give the same result.
 */
export function simulate(options: SimulationOptions): Simulation {
  return new Run(options).result();
}

/** Sources of events, in the order in which they go at one and the same moment; endpoints follow, then replicas. */
const FLEET = 0;
const SENDING = 1;
const CLIENTS = 2;
const EXCHANGE = 3;
const FIRST_ENDPOINT = 4;

class Run implements EngineObserver<Job> {
  readonly #options: SimulationOptions;
  readonly #clock: VirtualClock = { nowMs: 0 };
  readonly #agenda: Agenda;
  readonly #blockTokens: number;
  readonly #fleet: SimulatedFleet;
  readonly #replicas: readonly Replica[];
  readonly #balancers: readonly Balancer[];
  /** Undefined: each balancer is for itself. */
  readonly #replicating: Replicating | undefined;
  readonly #dealer: ReplicaDealer;
  readonly #clients: Clients;
  readonly #sending: SendLine;
  readonly #timeline: TimelineRecorder;
  readonly #journeys: Journey[] = [];
  readonly #fates: Fates = { ended: 0, refused: 0, oversized: 0, lost: 0, unfinished: 0 };
  /** Requests that came and are not over. */
  #open = 0;
  #nextFleetEvent = 0;
  /** Requests of the whole workload; 0: nobody wants to know how far the simulation is. */
  readonly #total: number;

  constructor(options: SimulationOptions) {
    this.#options = options;
    const { workload, fleet, events = [], replicas = { count: 1, dealing: "in_turn" } } = options;
    const { sendDelayMs = DEFAULT_SEND_DELAY_MS, seed = DEFAULT_SEED } = options;
    this.#blockTokens = blockTokensOf(workload, options.blockTokens);
    const engines = [...fleet.engines, ...events.flatMap((event) => (event.kind === "join" ? event.engines : []))];
    this.#fleet = new SimulatedFleet(engines, FIRST_ENDPOINT, this.#blockTokens, this.#clock, this);
    this.#fleet.join(fleet.engines.length);
    const firstReplica = FIRST_ENDPOINT + engines.length;
    this.#replicas = Array.from({ length: replicas.count }, (_, i) => this.#createReplica(i, firstReplica + i));
    this.#balancers = this.#replicas.map(({ balancer }) => balancer);
    this.#replicating = replicas.replication?.begin(this.#balancers);
    this.#dealer = new ReplicaDealer(this.#replicas, replicas.dealing, seededRandom(seed));
    this.#agenda = new Agenda(firstReplica + replicas.count);
    this.#clients = new Clients(workload);
    this.#sending = new SendLine(sendDelayMs);
    const ids = this.#fleet.endpoints.map(({ id }) => id);
    const sample = (atMs: number) => this.#fleet.sample(this.#balancers, atMs);
    this.#timeline = new TimelineRecorder(ids, sample, workload.arrivals.at(-1)?.atMs ?? 0);
    this.#total = options.onProgress === undefined ? 0 : countRequests(workload);
  }

  result(): Simulation {
    const { workload, fleet, policy, seed = DEFAULT_SEED, wallClockMs = () => 0 } = this.#options;
    const startedMs = wallClockMs();
    this.#begin();
    const agenda = this.#agenda;
    while (agenda.firstAtMs < Number.POSITIVE_INFINITY && (this.#open > 0 || this.#isMoreToCome)) this.#step();
    this.#fates.unfinished = this.#open;
    return {
      policy: typeof policy === "string" ? policy : policy.name,
      workload: workload.name,
      fleet: fleet.text,
      seed,
      requests: this.#journeys,
      timeline: this.#timeline.timeline(),
      preemptions: this.#fleet.preemptions(this.#clock.nowMs),
      wallMs: wallClockMs() - startedMs,
      fates: this.#fates,
    };
  }

  prefilled(job: Job, cachedTokens: number, atMs: number): void {
    const { journey, lease, replica } = job;
    if (lease === undefined) return;
    journey.firstTokenAtMs = atMs;
    journey.cachedTokens = cachedTokens;
    job.toldTokens = 1;
    this.#release(replica, replica.balancer.firstToken(lease, atMs));
  }

  finished(job: Job, atMs: number): void {
    const { journey, lease, replica, promptTokens, outputTokens } = job;
    if (lease === undefined) return;
    this.#tellProgress(job, outputTokens);
    journey.endedAtMs = atMs;
    job.lease = undefined;
    const outcome = { kind: "completed", promptTokens, outputTokens, cachedTokens: journey.cachedTokens } as const;
    this.#release(replica, replica.balancer.finish(lease, outcome, atMs));
    this.#settle(job.source, "ended");
  }

  readonly #tellProgress = (job: Job, generatedTokens: number): void => {
    const tokens = generatedTokens - job.toldTokens;
    // Nothing is seen of a request before its first token was.
    if (tokens <= 0 || job.toldTokens === 0 || job.lease === undefined) return;
    job.toldTokens = generatedTokens;
    job.replica.balancer.progress(job.lease, tokens, this.#clock.nowMs);
  };

  #createReplica(index: number, wakeSource: number): Replica {
    const { policy, policyOptions, whenFull, holding, seed = DEFAULT_SEED } = this.#options;
    const options = {
      policy,
      policyOptions,
      endpoints: this.#fleet.pool,
      random: seededRandom(seed * REPLICA_SEEDS + index),
      ...(holding === undefined ? {} : { holding }),
      ...(whenFull === undefined ? {} : { whenFull }),
    };
    return new Replica(options, wakeSource);
  }

  #begin(): void {
    for (const endpoint of this.#fleet.endpoints.slice(0, this.#fleet.pool.length)) this.#introduce(endpoint, 0);
    this.#agenda.set(EXCHANGE, this.#replicating?.nextAtMs ?? Number.POSITIVE_INFINITY);
    this.#setFleet();
    this.#setClients();
  }

  get #isMoreToCome(): boolean {
    return this.#clients.firstAtMs < Number.POSITIVE_INFINITY;
  }

  #step(): void {
    const source = this.#agenda.first;
    const nowMs = this.#agenda.firstAtMs;
    this.#timeline.recordUntil(nowMs);
    this.#clock.nowMs = nowMs;
    if (source === SENDING) this.#deliver(nowMs);
    else if (source === CLIENTS) this.#arrive(nowMs);
    else if (source === FLEET) this.#changeFleet(nowMs);
    else if (source === EXCHANGE) this.#exchange(nowMs);
    else this.#move(source - FIRST_ENDPOINT, nowMs);
    for (const replica of this.#replicas) if (replica.isTouched) this.#setWake(replica, nowMs);
  }

  #move(index: number, nowMs: number): void {
    const endpoint = this.#fleet.endpoints[index];
    if (endpoint === undefined) {
      const replica = this.#replicas[index - this.#fleet.endpoints.length] as Replica;
      this.#release(replica, replica.balancer.tick(nowMs));
      return;
    }
    endpoint.move(nowMs, this.#tellProgress);
    this.#agenda.set(endpoint.source, endpoint.nextEventMs);
  }

  #setClients(): void {
    this.#agenda.set(CLIENTS, this.#clients.firstAtMs);
  }

  #arrive(nowMs: number): void {
    const request = this.#clients.take();
    this.#setClients();
    if (request === undefined) return;
    this.#open++;
    const journey = new Journey(nowMs, request);
    this.#journeys.push(journey);
    if (journey.promptTokens + journey.outputTokens > this.#fleet.contextTokens) {
      this.#settle(request, "oversized");
      return;
    }
    const replica = this.#dealer.next(request.sessionKey);
    this.#decide(new Job(request, journey, replica, this.#blockTokens), nowMs);
  }

  #decide(job: Job, nowMs: number): void {
    const { replica } = job;
    replica.isTouched = true;
    const decision = replica.balancer.decide(job.profile, nowMs, job.tried);
    this.#act(job, decision);
    if (decision.kind === "held") this.#release(replica, decision.displaced);
  }

  #act(job: Job, decision: Decision): void {
    if (decision.kind === "routed") this.#send(job, decision);
    else if (decision.kind === "held") decision.ticket.holder = job;
    else this.#settle(job.source, "refused");
  }

  #send(job: Job, { endpoint: { id }, lease }: Routed): void {
    const { nowMs } = this.#clock;
    job.lease = lease;
    job.endpoint = this.#fleet.get(id);
    job.journey.sentAtMs ??= nowMs;
    job.journey.endpoint = id;
    this.#sending.add(job, nowMs);
    this.#agenda.set(SENDING, this.#sending.firstAtMs);
  }

  #deliver(nowMs: number): void {
    const job = this.#sending.take();
    this.#agenda.set(SENDING, this.#sending.firstAtMs);
    const endpoint = job?.endpoint;
    if (job === undefined || endpoint === undefined) return;
    if (endpoint.isUp) {
      endpoint.submit(job, nowMs);
      this.#agenda.set(endpoint.source, endpoint.nextEventMs);
    } else this.#breakOff(job, nowMs);
  }

  #release(replica: Replica, releases: readonly Release[]): void {
    replica.isTouched = true;
    for (const { ticket, decision } of releases) this.#act(ticket.holder as Job, decision);
  }

  /** A request is over. Its client goes on, however it went: that keeps the work the same under every policy. */
  #settle({ next }: WorkloadRequest, fate: keyof Fates): void {
    this.#fates[fate]++;
    this.#open--;
    if (this.#total > 0 && this.#clients.sent % PROGRESS_EVERY === 0) {
      this.#options.onProgress?.((this.#clients.sent - this.#open) / this.#total);
    }
    if (next === undefined) return;
    this.#clients.goOn(next, this.#clock.nowMs);
    this.#setClients();
  }

  /** When time alone releases something. A timer of a real gateway fires after a whole millisecond at the earliest. */
  #setWake(replica: Replica, nowMs: number): void {
    replica.isTouched = false;
    const { balancer, wakeSource } = replica;
    const wakeMs = balancer.heldRequests === 0 ? undefined : balancer.nextWakeMs(nowMs);
    this.#agenda.set(wakeSource, wakeMs === undefined ? Number.POSITIVE_INFINITY : Math.max(wakeMs, nowMs + 1));
  }

  #exchange(nowMs: number): void {
    const replicating = this.#replicating as Replicating;
    this.#agenda.set(EXCHANGE, Number.POSITIVE_INFINITY);
    for (const { ticket, decision } of replicating.move(nowMs)) this.#act(ticket.holder as Job, decision);
    for (const replica of this.#replicas) replica.isTouched = true;
    // Where nothing else is to come, exchanges alone change nothing.
    if (this.#agenda.firstAtMs < Number.POSITIVE_INFINITY) this.#agenda.set(EXCHANGE, replicating.nextAtMs);
  }

  #setFleet(): void {
    this.#agenda.set(FLEET, this.#options.events?.[this.#nextFleetEvent]?.atMs ?? Number.POSITIVE_INFINITY);
  }

  #changeFleet(nowMs: number): void {
    const event = this.#options.events?.[this.#nextFleetEvent++];
    this.#setFleet();
    if (event?.kind === "join") this.#join(event.engines.length, nowMs);
    if (event?.kind === "fail") this.#fail(this.#fleet.get(event.id), nowMs);
    if (event?.kind === "recover") this.#recover(this.#fleet.get(event.id), nowMs);
  }

  #join(count: number, nowMs: number): void {
    const joining = this.#fleet.join(count);
    for (const replica of this.#replicas) {
      this.#release(replica, replica.balancer.setEndpoints(this.#fleet.pool, nowMs));
    }
    for (const endpoint of joining) this.#introduce(endpoint, nowMs);
  }

  /** What a balancer learns at the first reading of the metrics and the first good probe. */
  #introduce({ id, signals }: SimulatedEndpoint, nowMs: number): void {
    this.#observe({ kind: "signals", endpointId: id, signals }, nowMs);
    this.#observe({ kind: "availability", endpointId: id, availability: "ready" }, nowMs);
  }

  /** Broken connections tell the balancers at once. Requests that had begun are lost, the others go elsewhere. */
  #fail(endpoint: SimulatedEndpoint, nowMs: number): void {
    const jobs = endpoint.fail(nowMs);
    this.#agenda.set(endpoint.source, Number.POSITIVE_INFINITY);
    this.#observe({ kind: "availability", endpointId: endpoint.id, availability: "down" }, nowMs);
    for (const job of jobs) this.#breakOff(job, nowMs);
  }

  #breakOff(job: Job, nowMs: number): void {
    const { lease, endpoint, replica } = job;
    if (lease === undefined || endpoint === undefined) return;
    job.lease = undefined;
    this.#release(replica, replica.balancer.finish(lease, { kind: "failed" }, nowMs));
    if (job.journey.firstTokenAtMs === undefined) {
      job.tried = [...job.tried, endpoint.id];
      this.#decide(job, nowMs);
    } else this.#settle(job.source, "lost");
  }

  #recover(endpoint: SimulatedEndpoint, nowMs: number): void {
    endpoint.isUp = true;
    this.#observe({ kind: "restarted", endpointId: endpoint.id }, nowMs);
    this.#introduce(endpoint, nowMs);
  }

  #observe(observation: Parameters<Balancer["observe"]>[0], nowMs: number): void {
    for (const replica of this.#replicas) this.#release(replica, replica.balancer.observe(observation, nowMs));
  }
}

const DEFAULT_SEED = 1;

/** Replicas of one seed and of the next draw different numbers. */
const REPLICA_SEEDS = 1_000;

/** Requests between two reports of how far a simulation is. */
const PROGRESS_EVERY = 256;

/** Engines work in the blocks in which the workload knows its prompts, so that equal blocks are found equal. */
function blockTokensOf({ arrivals, blockTokens }: Workload, wanted = DEFAULT_BLOCK_TOKENS): number {
  return arrivals.some(({ request }) => request.blockIds.length > 0) ? blockTokens : wanted;
}
