import {
  type Candidate,
  type Candidates,
  type EngineCoefficients,
  EngineSpeed,
  engineCoefficients,
  findPolicy,
  type Policy,
  type PolicyDefinition,
  type RequestProfile,
  SpeedPool,
} from "../../src/core/index.ts";
import type { FleetSpec } from "../../src/sim/index.ts";

/** Something that our policy is told wrong. */
export interface Disturbance {
  readonly name: string;
  /** What the balancer is configured with; absent: what is true. */
  fleet?(fleet: FleetSpec): FleetSpec;
  /** Absent: the policy as it is. */
  policy?(): PolicyDefinition;
}

/** Each alone. */
export const DISTURBANCES: readonly Disturbance[] = [
  {
    name: "20 % of the index lost",
    fleet: (fleet) => withKvFactor(fleet, KEPT_SHARE),
    policy: () => withTrueCapacity(OURS, KEPT_SHARE),
  },
  { name: "KV capacity +5 %", fleet: (fleet) => withKvFactor(fleet, 1.05) },
  { name: "KV capacity -5 %", fleet: (fleet) => withKvFactor(fleet, 0.95) },
  { name: "coefficients x2", policy: () => withSpeedFactor(OURS, () => 2) },
  { name: "coefficients x0.5", policy: () => withSpeedFactor(OURS, () => 0.5) },
];

/** Of the index: its oldest entries are the ones that are lost. */
const KEPT_SHARE = 0.8;

const OURS: PolicyDefinition = findPolicy("least_delay");

/** The balancer takes what it is configured with for the truth, whatever engines report. */
function withKvFactor(fleet: FleetSpec, factor: number): FleetSpec {
  const engines = fleet.engines.map((spec) => ({
    ...spec,
    configuredKvTokens: Math.round(factor * spec.profile.kvTokens),
  }));
  return { ...fleet, engines };
}

/** Candidates show their whole capacity, though the balancer, and with it the index, was configured with `factor` of it. */
export function withTrueCapacity(definition: PolicyDefinition, factor: number): PolicyDefinition {
  const corrected = new WeakSet<Candidate>();
  const correct = (candidate: Candidate): void => {
    if (corrected.has(candidate)) return;
    corrected.add(candidate);
    const { kvCapacityTokens = 0 } = candidate.endpoint;
    Object.defineProperty(candidate, "kvCapacityTokens", { value: kvCapacityTokens / factor });
  };
  return {
    ...definition,
    create: (options) => {
      const policy = definition.create(options);
      return {
        ...policy,
        choose: (request, candidates, context) => {
          candidates.forEach(correct);
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
        canBegin: (request, candidate, nowMs) => lateBinding.canBegin(request, misjudge(candidate), nowMs),
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

  get coefficients(): EngineCoefficients {
    return this.speed.coefficients;
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

  get evictableKvTokens(): number {
    return this.truth.evictableKvTokens;
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

  constructor(truth: EngineSpeed, factor: number) {
    super(new SpeedPool(), undefined);
    this.#truth = truth;
    this.#factor = factor;
  }

  override get coefficients(): EngineCoefficients {
    return scaledBy(this.#truth.coefficients, this.#factor);
  }
}

function scaledBy(coefficients: EngineCoefficients, factor: number): EngineCoefficients {
  const { stepMs, weightsMs, computeMs, tokenMs, pairMs, contextMs, sequenceMs, maxBatchTokens } = coefficients;
  return engineCoefficients({
    stepMs: factor * stepMs,
    weightsMs: factor * weightsMs,
    computeMs: factor * computeMs,
    tokenMs: factor * tokenMs,
    pairMs: factor * pairMs,
    contextMs: factor * contextMs,
    sequenceMs: factor * sequenceMs,
    maxBatchTokens,
  });
}
