import { type Random, seededRandom } from "../../src/core/index.ts";

/** What happens to the fleet. Clients misbehave all the time besides, see `clients.ts`. */
export const FAULT_KINDS = [
  "kill",
  "restart",
  "short freeze",
  "long freeze",
  "hang",
  "reset",
  "cut",
  "engine error",
  "stall",
  "5xx burst",
  "429 burst",
  "unhealthy",
  "remove",
  "drain",
] as const;

export type FaultKind = (typeof FAULT_KINDS)[number];

/** One fault to come. */
export interface PlannedFault {
  readonly kind: FaultKind;
  /** Faults of one lane come one after the other. */
  readonly lane: number;
  /** From the start of the run, at the earliest. */
  readonly atMs: number;
  readonly durationMs: number;
  /** Index of the engine. */
  readonly engine: number;
  /** Fault specifications for the engine (docs/engine.md); empty: the fault is not the engine's own doing. */
  readonly specs: readonly string[];
}

/** What a run may be struck by. */
export interface FaultSetting {
  readonly kinds: readonly FaultKind[];
  readonly engines: number;
  readonly durationMs: number;
  readonly seed: number;
}

/**
 * Faults of three sorts that go on at the same time, each at an engine of its own: never is there more than one engine
 * that is dead or stands still, one that misbehaves and one that leaves the file. So a request that was refused before
 * it began had engines that were well, whatever happened.
 */
interface Lane {
  readonly kinds: readonly FaultKind[];
  /** From the end of one fault to the next one: what engine and balancer get to recover. */
  readonly pauseMs: readonly [number, number];
}

const LANES: readonly Lane[] = [
  { kinds: ["kill", "restart", "short freeze", "long freeze", "hang"], pauseMs: [2500, 4000] },
  {
    kinds: ["reset", "cut", "engine error", "stall", "5xx burst", "429 burst", "unhealthy"],
    pauseMs: [500, 2000],
  },
  { kinds: ["remove", "drain"], pauseMs: [2000, 5000] },
];

/** How long each lasts, in ms. A long freeze outlasts every time-out of the balancer under test, a short one none. */
const DURATIONS_MS: Readonly<Record<FaultKind, readonly [number, number]>> = {
  kill: [500, 3000],
  restart: [300, 2000],
  "short freeze": [300, 1500],
  "long freeze": [7000, 8000],
  hang: [500, 2000],
  reset: [1000, 2500],
  cut: [1000, 2500],
  "engine error": [1000, 2500],
  stall: [500, 1500],
  "5xx burst": [1000, 2500],
  "429 burst": [1000, 2500],
  unhealthy: [1000, 3000],
  remove: [2000, 5000],
  drain: [2000, 5000],
};

/** All faults of a run, in order; the same seed gives the same. Every kind comes up before any comes up again. */
export function planFaults({ kinds, engines, durationMs, seed }: FaultSetting): PlannedFault[] {
  const random = seededRandom(seed);
  const faults: PlannedFault[] = [];
  const lanes = LANES.map((lane) => ({ ...lane, kinds: lane.kinds.filter((kind) => kinds.includes(kind)) }));
  const used = lanes.filter((lane) => lane.kinds.length > 0);
  used.forEach((lane, index) => {
    // Engines are dealt to the lanes in turn, so that no two lanes ever strike the same.
    const own = Array.from({ length: engines }, (_, engine) => engine).filter(
      (engine) => engine % used.length === index,
    );
    let atMs = between(random, lane.pauseMs);
    for (let deck: FaultKind[] = []; ; ) {
      if (deck.length === 0) deck = shuffled(lane.kinds, random);
      const kind = deck.pop() as FaultKind;
      const lastsMs = between(random, DURATIONS_MS[kind]);
      if (atMs + lastsMs > durationMs) break;
      const engine = own[Math.floor(random.next() * own.length)] as number;
      faults.push({ kind, lane: index, atMs, durationMs: lastsMs, engine, specs: specsOf(kind, random) });
      atMs += lastsMs + between(random, lane.pauseMs);
    }
  });
  return faults.sort((a, b) => a.atMs - b.atMs);
}

function specsOf(kind: FaultKind, random: Random): string[] {
  const after = `after=${Math.floor(random.next() * 12)}`;
  switch (kind) {
    case "hang":
      return ["hold"];
    case "reset":
      return [`reset,${after}`];
    case "cut":
      return [`fin,${after}`];
    case "engine error":
      return [`error,${after}`];
    case "stall":
      return [`stall,${after}`];
    case "5xx burst":
      return [500, 502, 504].map((status) => `status=${status},count=${1 + Math.floor(random.next() * 10)}`);
    case "429 burst":
      return [random.next() < 0.5 ? "status=429,retry-after=1" : "status=503"];
    case "unhealthy":
      return ["health=503"];
    default:
      return [];
  }
}

function shuffled<Item>(items: readonly Item[], random: Random): Item[] {
  const keyed = items.map((item) => ({ item, key: random.next() }));
  return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item);
}

function between(random: Random, [low, high]: readonly [number, number]): number {
  return Math.round(low + random.next() * (high - low));
}
