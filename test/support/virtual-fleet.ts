import { type Balancer, type Lease, PRIOR_COEFFICIENTS, type RequestProfile } from "../../src/core/index.ts";

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
    if (this.endsAtMs === Number.POSITIVE_INFINITY) this.#begin(nowMs);
  }

  /** Ends the current iteration and begins the next; returns the requests that are done. */
  advance(balancer: Balancer): Job[] {
    const nowMs = this.endsAtMs;
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
      balancer.firstToken(job.lease, nowMs);
    }
    const done = this.#running.filter((job) => job.generatedTokens >= job.arrival.outputTokens);
    this.#running = this.#running.filter((job) => job.generatedTokens < job.arrival.outputTokens);
    this.#begin(nowMs);
    return done;
  }

  #begin(nowMs: number): void {
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
  const engines = new Map(Object.entries(slowdowns).map(([id, slowdown]) => [id, new VirtualEngine(slowdown)]));
  const served: Served[] = [];
  let next = 0;
  for (;;) {
    const arrival = arrivals[next];
    const [id, engine] = [...engines].reduce((a, b) => (b[1].endsAtMs < a[1].endsAtMs ? b : a));
    if (arrival !== undefined && arrival.atMs <= engine.endsAtMs) {
      next++;
      const decision = balancer.decide(arrival.profile, arrival.atMs);
      if (decision.kind !== "routed") throw new Error(`refused: ${decision.reason}`);
      const job = { arrival, lease: decision.lease, prefilledTokens: 0, generatedTokens: 0, firstTokenAtMs: 0 };
      engines.get(decision.endpoint.id)?.accept(job, arrival.atMs);
      continue;
    }
    if (engine.endsAtMs === Number.POSITIVE_INFINITY) return served;
    const endedAtMs = engine.endsAtMs;
    for (const { arrival, lease, generatedTokens, firstTokenAtMs } of engine.advance(balancer)) {
      balancer.finish(lease, { kind: "completed", outputTokens: generatedTokens }, endedAtMs);
      served.push({ endpointId: id, arrivedAtMs: arrival.atMs, firstTokenAtMs, endedAtMs });
    }
  }
}
