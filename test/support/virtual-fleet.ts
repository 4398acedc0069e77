import {
  type Balancer,
  type Lease,
  PRIOR_COEFFICIENTS,
  type Release,
  type RequestProfile,
  type Routed,
  type Ticket,
} from "../../src/core/index.ts";
import { mustBeRouted } from "./decisions.ts";

/** A request of the scenario: what the balancer is told of it, and how long its answer really is. */
export interface Arrival {
  readonly atMs: number;
  readonly profile: RequestProfile;
  readonly outputTokens: number;
}

/** How one request fared. */
export interface Served {
  readonly endpointId: string;
  readonly arrivedAtMs: number;
  readonly firstTokenAtMs: number;
  readonly endedAtMs: number;
}

interface Job {
  readonly arrival: Arrival;
  readonly lease: Lease;
  prefilledTokens: number;
  generatedTokens: number;
  firstTokenAtMs: number;
}

/** Prompt tokens one iteration takes at most. */
const BATCH_TOKENS = 2048;

/**
 * One engine under virtual time: every iteration gives each running request a token and works on the
 * waiting prompts in order of arrival. Deliberately plain; the simulator has the full model.
 */
class VirtualEngine {
  readonly #slowdown: number;
  readonly #waiting: Job[] = [];
  #running: Job[] = [];
  /** Prompt tokens of the current iteration, by job. */
  #chunks = new Map<Job, number>();
  endsAtMs: number = Number.POSITIVE_INFINITY;

  /** @param slowdown 1: as the prior coefficients; 2: every iteration takes twice as long. */
  constructor(slowdown: number) {
    this.#slowdown = slowdown;
  }

  accept(job: Job, nowMs: number): void {
    this.#waiting.push(job);
    this.begin(nowMs);
  }

  /** Ends the current iteration: the requests that got their first token by it, and those that are done. */
  advance(balancer: Balancer): { readonly first: readonly Job[]; readonly done: readonly Job[] } {
    const nowMs = this.endsAtMs;
    const first: Job[] = [];
    for (const job of this.#running) {
      job.generatedTokens++;
      balancer.progress(job.lease, 1, nowMs);
    }
    for (const [job, tokens] of this.#chunks) {
      job.prefilledTokens += tokens;
      if (job.prefilledTokens < job.arrival.profile.promptTokens) continue;
      this.#waiting.splice(this.#waiting.indexOf(job), 1);
      this.#running.push(job);
      job.generatedTokens = 1;
      job.firstTokenAtMs = nowMs;
      first.push(job);
    }
    const done = this.#running.filter((job) => job.generatedTokens >= job.arrival.outputTokens);
    this.#running = this.#running.filter((job) => job.generatedTokens < job.arrival.outputTokens);
    this.endsAtMs = Number.POSITIVE_INFINITY;
    return { first, done };
  }

  /** Begins the next iteration, if none is under way. */
  begin(nowMs: number): void {
    if (this.endsAtMs !== Number.POSITIVE_INFINITY) return;
    this.#chunks = new Map();
    const engine = PRIOR_COEFFICIENTS;
    let budget = BATCH_TOKENS;
    let pairs = 0;
    for (const job of this.#waiting) {
      const chunk = Math.min(budget, job.arrival.profile.promptTokens - job.prefilledTokens);
      if (chunk <= 0) break;
      this.#chunks.set(job, chunk);
      budget -= chunk;
      pairs += chunk * (job.prefilledTokens + chunk / 2);
    }
    const sequences = this.#running.length;
    const tokens = BATCH_TOKENS - budget + sequences;
    let contextTokens = 0;
    for (const { arrival, generatedTokens } of this.#running) {
      contextTokens += arrival.profile.promptTokens + generatedTokens;
    }
    const iterationMs =
      engine.stepMs +
      Math.max(engine.weightsMs, engine.computeMs * tokens) +
      engine.tokenMs * tokens +
      engine.pairMs * pairs +
      engine.contextMs * contextTokens +
      engine.sequenceMs * sequences;
    this.endsAtMs = tokens === 0 ? Number.POSITIVE_INFINITY : nowMs + this.#slowdown * iterationMs;
  }
}

/** Serves `arrivals`, in order of time, by engines of the given slowdowns; the balancer decides and learns. */
export function serveVirtually(
  balancer: Balancer,
  slowdowns: Readonly<Record<string, number>>,
  arrivals: readonly Arrival[],
): Served[] {
  const run = new VirtualRun(balancer, slowdowns);
  for (const arrival of arrivals) {
    run.advanceTo(arrival.atMs);
    run.arrive(arrival);
  }
  run.advanceTo(Number.POSITIVE_INFINITY);
  return run.served;
}

class VirtualRun {
  readonly served: Served[] = [];
  readonly #balancer: Balancer;
  readonly #engines: ReadonlyMap<string, VirtualEngine>;
  readonly #held = new Map<Ticket, Arrival>();

  constructor(balancer: Balancer, slowdowns: Readonly<Record<string, number>>) {
    this.#balancer = balancer;
    this.#engines = new Map(Object.entries(slowdowns).map(([id, slowdown]) => [id, new VirtualEngine(slowdown)]));
  }

  arrive(arrival: Arrival): void {
    const decision = this.#balancer.decide(arrival.profile, arrival.atMs);
    if (decision.kind === "held") this.#held.set(decision.ticket, arrival);
    else this.#send(arrival, mustBeRouted(decision), arrival.atMs);
  }

  /** Everything that happens before `untilMs`. */
  advanceTo(untilMs: number): void {
    for (let nowMs = 0; ; ) {
      const [id, engine] = [...this.#engines].reduce((a, b) => (b[1].endsAtMs < a[1].endsAtMs ? b : a));
      const wakeMs = this.#balancer.nextWakeMs(nowMs) ?? Number.POSITIVE_INFINITY;
      nowMs = Math.min(engine.endsAtMs, wakeMs);
      if (nowMs >= untilMs) return;
      if (nowMs === wakeMs) this.#release(this.#balancer.tick(nowMs), nowMs);
      else this.#finishStep(id, engine);
    }
  }

  #finishStep(id: string, engine: VirtualEngine): void {
    const nowMs = engine.endsAtMs;
    const { first, done } = engine.advance(this.#balancer);
    for (const { lease } of first) this.#release(this.#balancer.firstToken(lease, nowMs), nowMs);
    for (const { arrival, lease, generatedTokens, firstTokenAtMs } of done) {
      const outcome = { kind: "completed", outputTokens: generatedTokens } as const;
      this.#release(this.#balancer.finish(lease, outcome, nowMs), nowMs);
      this.served.push({ endpointId: id, arrivedAtMs: arrival.atMs, firstTokenAtMs, endedAtMs: nowMs });
    }
    engine.begin(nowMs);
  }

  #release(releases: readonly Release[], nowMs: number): void {
    for (const { ticket, decision } of releases) {
      const arrival = this.#held.get(ticket);
      if (arrival === undefined) throw new Error("released, though it was not held");
      this.#held.delete(ticket);
      this.#send(arrival, mustBeRouted(decision), nowMs);
    }
  }

  #send(arrival: Arrival, { endpoint, lease }: Routed, nowMs: number): void {
    const job = { arrival, lease, prefilledTokens: 0, generatedTokens: 0, firstTokenAtMs: 0 };
    this.#engines.get(endpoint.id)?.accept(job, nowMs);
  }
}
