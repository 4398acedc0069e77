import {
  type Balancer,
  decodeStepMs,
  type Lease,
  prefillMs,
  requestProfile,
  seededRandom,
} from "../../src/core/index.ts";
import { EngineModel, type EngineProfile } from "../../src/sim/index.ts";
import { Deliveries } from "./deliveries.ts";

/** How tokens come to the balancer. */
export interface Delivery {
  /** Each step of an engine takes up to this share longer or shorter than it should. */
  readonly jitter: number;
  /** Share of the requests whose tokens are only let through every `BURST_MS`. */
  readonly coalesced: number;
}

const BURST_MS = 50;

interface Request {
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly blockHashes: readonly number[];
  readonly lease: Lease;
  readonly isCoalesced: boolean;
}

const MEAN_PROMPT_TOKENS = 3500;
const MEAN_OUTPUT_TOKENS = 700;

/**
 * Serves chat and documents on simulated engines of the given profiles, one per endpoint of the balancer and in its
 * order, under virtual time. Arrivals swell from next to nothing to more than the engines can do and fall again, in
 * waves of a minute and a half, so that batches and contexts of every size are seen.
 */
export function serveWaves(
  balancer: Balancer,
  profiles: readonly EngineProfile[],
  { jitter, coalesced }: Delivery,
  forMs: number,
  seed: number,
): void {
  const random = seededRandom(seed);
  const deliveries = new Deliveries();
  const deliver = (request: Request, generated: number, atMs: number): void => {
    const nowMs = request.isCoalesced ? Math.ceil(atMs / BURST_MS) * BURST_MS : atMs;
    deliveries.at(nowMs, () => {
      if (generated === 1) balancer.firstToken(request.lease, nowMs);
      else balancer.progress(request.lease, 1, nowMs);
      const { promptTokens, outputTokens } = request;
      if (generated === outputTokens) {
        balancer.finish(request.lease, { kind: "completed", promptTokens, outputTokens }, nowMs);
      }
    });
  };
  const engines = profiles.map(
    (profile) => new JitteryEngine(profile, () => 1 + jitter * (2 * random.next() - 1), deliver),
  );
  const engineOf = new Map(balancer.members.map(({ endpoint }, i) => [endpoint.id, engines[i]]));
  const mostPerMs = profiles.reduce((sum, profile) => sum + 1 / workMs(profile), 0);

  let arrivalMs = 0;
  while (arrivalMs < forMs) {
    const engine = engines.reduce((a, b) => (b.nextMs < a.nextMs ? b : a));
    const nowMs = Math.min(deliveries.nextMs, engine.nextMs, arrivalMs);
    if (nowMs === deliveries.nextMs) deliveries.run();
    else if (nowMs === engine.nextMs) engine.advance();
    else {
      const swell = 0.5 - 0.48 * Math.cos((2 * Math.PI * nowMs) / WAVE_MS);
      arrivalMs -= Math.log(1 - random.next()) / (mostPerMs * PEAK_LOAD * swell);
      const [promptTokens, outputTokens] = sizes(random.next(), random.next(), random.next());
      const profiled = requestProfile({ promptTokens, expectedOutputTokens: MEAN_OUTPUT_TOKENS });
      const decision = balancer.decide(profiled, nowMs);
      if (decision.kind !== "routed") throw new Error(`not routed: ${decision.kind}`);
      const { lease } = decision;
      const isCoalesced = random.next() < coalesced;
      const request = { promptTokens, outputTokens, blockHashes: [], lease, isCoalesced };
      engineOf.get(lease.endpointId)?.submit(request, nowMs);
    }
  }
}

/** An engine whose steps take longer or shorter than they should: its clock goes slower or faster during each. */
class JitteryEngine {
  readonly #engine: EngineModel<Request>;
  readonly #draw: () => number;
  /** A moment, by the clock outside and by the engine's own, and how long one of its milliseconds takes since. */
  #outerMs = 0;
  #innerMs = 0;
  #pace = 1;

  constructor(
    profile: EngineProfile,
    draw: () => number,
    token: (r: Request, generated: number, atMs: number) => void,
  ) {
    this.#engine = new EngineModel(
      { profile },
      { token: (request, generated) => token(request, generated, this.#outerMs) },
    );
    this.#draw = draw;
  }

  /** Infinity: it is empty. */
  get nextMs(): number {
    const nextMs = this.#engine.nextEventMs();
    return nextMs === undefined ? Number.POSITIVE_INFINITY : this.#outerMs + this.#pace * (nextMs - this.#innerMs);
  }

  submit(request: Request, nowMs: number): void {
    this.#engine.submit(request, this.#innerMs + (nowMs - this.#outerMs) / this.#pace);
  }

  /** Ends the step that ends now. */
  advance(): void {
    const innerMs = this.#engine.nextEventMs();
    if (innerMs === undefined) return;
    this.#outerMs = this.nextMs;
    this.#innerMs = innerMs;
    this.#pace = this.#draw();
    this.#engine.advance(innerMs);
  }
}

const WAVE_MS = 90_000;
const PEAK_LOAD = 1.3;

/** Log-normal prompts, one in twelve a document, and exponential answers, from three even draws. */
function sizes(a: number, b: number, c: number): [promptTokens: number, outputTokens: number] {
  const normal = Math.sqrt(-2 * Math.log(1 - a)) * Math.cos(2 * Math.PI * b);
  const isDocument = (c * 1000) % 12 < 1;
  const promptTokens = Math.round((isDocument ? 16_000 : 1200) * Math.exp((isDocument ? 0.5 : 1) * normal));
  const outputTokens = Math.round(-MEAN_OUTPUT_TOKENS * Math.log(1 - c));
  return [Math.min(60_000, Math.max(20, promptTokens)), Math.min(4000, Math.max(1, outputTokens))];
}

/** Time of the engine that one request takes, in a large batch. */
function workMs({ coefficients }: EngineProfile): number {
  const ownMs = prefillMs(coefficients, MEAN_PROMPT_TOKENS, MEAN_PROMPT_TOKENS ** 2);
  const batch = 64;
  return ownMs + (MEAN_OUTPUT_TOKENS / batch) * decodeStepMs(coefficients, batch, batch * MEAN_PROMPT_TOKENS);
}
