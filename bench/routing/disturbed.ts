import {
  type Candidate,
  type Candidates,
  type EngineCoefficients,
  EngineSpeed,
  findPolicy,
  type Policy,
  type PolicyDefinition,
  type RequestProfile,
  SpeedPool,
  seededRandom,
} from "../../src/core/index.ts";
import type { EngineSpec, FleetSpec } from "../../src/sim/index.ts";

/** Something that our policy is told wrong. */
export interface Disturbance {
  readonly name: string;
  /** What the balancer is configured with; absent: what is true. */
  fleet?(fleet: FleetSpec): FleetSpec;
  /** Absent: the policy as it is. */
  policy?(engines: readonly EngineSpec[], seed: number): PolicyDefinition;
}

/** Each alone. */
export const DISTURBANCES: readonly Disturbance[] = [
  { name: "20 % of the index lost", policy: (_engines, seed) => withLostIndex(OURS, 0.2, seed) },
  { name: "KV capacity +5 %", fleet: (fleet) => withKvFactor(fleet, 1.05) },
  { name: "KV capacity -5 %", fleet: (fleet) => withKvFactor(fleet, 0.95) },
  { name: "coefficients x2", policy: () => withSpeedFactor(OURS, () => 2) },
  { name: "coefficients x0.5", policy: () => withSpeedFactor(OURS, () => 0.5) },
  { name: "coefficients x2 and x0.5", policy: (engines) => withSpeedFactor(OURS, everySecond(engines, 2, 0.5)) },
];

const OURS: PolicyDefinition = findPolicy("least_delay");

/** The balancer takes what it is configured with for the truth, whatever engines report. */
function withKvFactor(fleet: FleetSpec, factor: number): FleetSpec {
  const engines = fleet.engines.map((spec) => ({
    ...spec,
    configuredKvTokens: Math.round(factor * spec.profile.kvTokens),
  }));
  return { ...fleet, engines };
}

/** In turn, so that in a mixed fleet each kind of engine is wrong both ways. */
function everySecond(engines: readonly EngineSpec[], even: number, odd: number): (endpointId: string) => number {
  const factors = new Map(engines.map(({ id }, index) => [id, index % 2 === 0 ? even : odd]));
  return (endpointId) => factors.get(endpointId) ?? 1;
}

/**
 * Of each request and endpoint, a lookup in the index finds nothing with this probability, and finds nothing again when
 * it is repeated. The candidates themselves are altered: what the ledger books follows from the same lookups.
 */
export function withLostIndex(definition: PolicyDefinition, lostShare: number, seed: number): PolicyDefinition {
  const random = seededRandom(seed);
  const drawnFor = new WeakMap<object, number>();
  const drawOf = (key: object): number => {
    const drawn = drawnFor.get(key) ?? random.next() * 2 ** 32;
    drawnFor.set(key, drawn);
    return drawn;
  };
  const lose = (candidate: Candidate): void => {
    if (drawnFor.has(candidate)) return;
    const own = drawOf(candidate);
    const find = candidate.cachedTokens.bind(candidate);
    candidate.cachedTokens = (request) => (mixed(own ^ drawOf(request)) < lostShare ? 0 : find(request));
  };
  return {
    ...definition,
    create: (options) => {
      const policy = definition.create(options);
      return {
        ...policy,
        choose: (request, candidates, context) => {
          candidates.forEach(lose);
          return policy.choose(request, candidates, context);
        },
      };
    },
  };
}

/** Endpoints are believed to take `factorOf` times as long as they were seen to, for everything. */
export function withSpeedFactor(
  definition: PolicyDefinition,
  factorOf: (endpointId: string) => number,
): PolicyDefinition {
  const believed = new WeakMap<Candidate, Misjudged>();
  const misjudge = (candidate: Candidate): Misjudged => {
    let wrong = believed.get(candidate);
    if (wrong === undefined) {
      wrong = new Misjudged(candidate, factorOf(candidate.endpoint.id));
      believed.set(candidate, wrong);
    }
    return wrong;
  };
  return { ...definition, create: (options) => misjudging(definition.create(options), misjudge) };
}

function misjudging(policy: Policy, misjudge: (candidate: Candidate) => Misjudged): Policy {
  const { lateBinding } = policy;
  return {
    choose(request, [first, ...rest], context) {
      const candidates: Candidates = [misjudge(first), ...rest.map(misjudge)];
      const choice = policy.choose(request, candidates, context);
      return { ...choice, chosen: (choice.chosen as Misjudged).truth };
    },
    ...(lateBinding && {
      lateBinding: {
        fits: (request, candidate) => lateBinding.fits(request, misjudge(candidate)),
        canBegin: (request, candidate) => lateBinding.canBegin(request, misjudge(candidate)),
        holdKey: (request, candidate, arrivedAtMs) => lateBinding.holdKey(request, misjudge(candidate), arrivedAtMs),
      },
    }),
  };
}

/** A candidate with a wrong speed; everything else is as it is. */
class Misjudged implements Candidate {
  readonly truth: Candidate;
  readonly speed: EngineSpeed;

  constructor(truth: Candidate, factor: number) {
    this.truth = truth;
    this.speed = new WrongSpeed(truth.speed, factor);
  }

  get endpoint(): Candidate["endpoint"] {
    return this.truth.endpoint;
  }

  get account(): Candidate["account"] {
    return this.truth.account;
  }

  get signals(): Candidate["signals"] {
    return this.truth.signals;
  }

  get kvCapacityTokens(): number | undefined {
    return this.truth.kvCapacityTokens;
  }

  get kvTokens(): number {
    return this.truth.kvTokens;
  }

  get held(): Candidate["held"] {
    return this.truth.held;
  }

  cachedTokens(request: RequestProfile): number {
    return this.truth.cachedTokens(request);
  }

  visitEvicted(...asked: Parameters<Candidate["visitEvicted"]>): void {
    this.truth.visitEvicted(...asked);
  }
}

class WrongSpeed extends EngineSpeed {
  readonly #truth: EngineSpeed;
  readonly #factor: number;
  #scaledFrom: EngineCoefficients | undefined;
  #scaled: EngineCoefficients | undefined;

  constructor(truth: EngineSpeed, factor: number) {
    super(new SpeedPool(), undefined);
    this.#truth = truth;
    this.#factor = factor;
  }

  override get coefficients(): EngineCoefficients {
    const { coefficients } = this.#truth;
    if (this.#scaled === undefined || this.#scaledFrom !== coefficients) {
      this.#scaledFrom = coefficients;
      this.#scaled = scaledBy(coefficients, this.#factor);
    }
    return this.#scaled;
  }
}

function scaledBy(coefficients: EngineCoefficients, factor: number): EngineCoefficients {
  const { stepMs, weightsMs, computeMs, tokenMs, pairMs, contextMs, sequenceMs, maxBatchTokens } = coefficients;
  return {
    stepMs: factor * stepMs,
    weightsMs: factor * weightsMs,
    computeMs: factor * computeMs,
    tokenMs: factor * tokenMs,
    pairMs: factor * pairMs,
    contextMs: factor * contextMs,
    sequenceMs: factor * sequenceMs,
    maxBatchTokens,
  };
}

/** The bits of `state` mixed to a number in [0, 1), by the finalizer of MurmurHash3. */
function mixed(state: number): number {
  let bits = state;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 32;
}
