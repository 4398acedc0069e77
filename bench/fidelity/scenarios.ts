import { join } from "node:path";
import {
  type Arrival,
  BLOCK_TOKENS,
  type FleetSpec,
  parseFleet,
  scaleRate,
  syntheticWorkload,
  type Workload,
} from "../../src/sim/index.ts";
import type { PolicyChoice } from "../support/live-fleet.ts";
import { readTrace } from "../support/read-trace.ts";

/** One workload on one fleet, served live and simulated under several policies. */
export interface Scenario {
  readonly name: string;
  readonly workload: Workload;
  readonly fleet: FleetSpec;
  readonly policies: readonly PolicyCase[];
  /** That both sides agree, or that holding gains: where memory is short, chance moves the means by more than a tenth. */
  readonly shows: "fidelity" | "gain";
}

/** A policy as the tables name it. */
export interface PolicyCase extends PolicyChoice {
  readonly label: string;
}

/** What makes a scenario. */
export interface ScenarioSource {
  readonly name: ScenarioName;
  /** @param traces Folder of the published traces. @param minutes Of traffic. */
  read(traces: string, minutes: number): Promise<Scenario>;
}

export type ScenarioName = "conversation" | "sessions" | "memory";

/** The two whose difference is what late binding gains. */
export const LEAST_DELAY: PolicyCase = { label: "least_delay", name: "least_delay", options: {} };
export const NOT_HELD: PolicyCase = {
  label: "least_delay, not held",
  name: "least_delay",
  options: { lateBinding: false },
};

const LEAST_CONNECTIONS: PolicyCase = { label: "least_connections", name: "least_connections", options: {} };
const ROUND_ROBIN: PolicyCase = { label: "round_robin", name: "round_robin", options: {} };

/**
 * Engines are slow, and requests few to match: steps take 60 ms and more, against which the milliseconds of this
 * machine's timers, processes and sockets hardly count, and two cores serve all policies at once.
 */
export const SCENARIOS: readonly ScenarioSource[] = [
  {
    name: "conversation",
    // 2.0 requests per second. Of 2.45, nine in ten would meet 10 s and 320 ms per token under least_connections.
    read: async (traces, minutes) => ({
      name: "conversation",
      workload: await traceAt(join(traces, "azure-2023-conv.csv"), 0.5, minutes),
      fleet: parseFleet("4*llama70b-tp4-a100@0.25"),
      policies: [LEAST_DELAY, NOT_HELD, LEAST_CONNECTIONS, ROUND_ROBIN],
      shows: "fidelity",
    }),
  },
  {
    name: "sessions",
    // Of 2.8 requests per second, nine in ten would meet 8 s and 320 ms per token under least_delay; of 1.6 under the next.
    read: async (_traces, minutes) => ({
      name: "sessions",
      workload: sessions(2, minutes),
      fleet: parseFleet("4*llama70b-tp4-a100@0.25"),
      policies: [LEAST_DELAY, NOT_HELD, LEAST_CONNECTIONS, ROUND_ROBIN],
      shows: "fidelity",
    }),
  },
  {
    name: "memory",
    // Memory is two thirds full on the mean, and each long prompt that comes may be the one too many.
    read: async (_traces, minutes) => ({
      name: "memory",
      workload: heavyTailed(3.6, minutes),
      fleet: withKvTokens(parseFleet("4*llama70b-tp4-a100@0.5"), SMALL_KV_TOKENS),
      policies: [LEAST_DELAY, NOT_HELD, LEAST_CONNECTIONS],
      shows: "gain",
    }),
  },
];

/** Conversations behind one of four system prompts; each turn repeats those before it and waits for its answer. */
function sessions(ratePerSecond: number, minutes: number): Workload {
  const requests = Math.max(1, Math.round(ratePerSecond * 60 * minutes));
  const turns = "in=exp(800),out=exp(200),prefix=4x1500,turns=4,think=exp(10s),loop=closed";
  return syntheticWorkload(`synthetic:rate=${ratePerSecond},requests=${requests},${turns}`);
}

/** Of a real engine on a small machine: room for some twenty requests of this load, or for three of its long ones. */
const SMALL_KV_TOKENS = 7_136;

/** Mostly short prompts, among which a few long ones take most of the memory; they share nothing. */
function heavyTailed(ratePerSecond: number, minutes: number): Workload {
  const part = (share: number, prompts: string, seed: number): readonly Arrival[] => {
    const rate = share * ratePerSecond;
    const requests = Math.max(1, Math.round(rate * 60 * minutes));
    const spec = `synthetic:rate=${rate},requests=${requests},in=${prompts},out=exp(150),seed=${seed}`;
    return syntheticWorkload(spec).arrivals;
  };
  const arrivals = [...part(0.85, "uniform(30,150)", 1), ...part(0.15, "uniform(1000,2500)", 2)]
    .map(({ atMs, request }) => ({ atMs, request: { ...request, blockIds: [] } }))
    .sort((a, b) => a.atMs - b.atMs);
  return { name: `heavy-tailed prompts at ${ratePerSecond}/s`, blockTokens: BLOCK_TOKENS, arrivals };
}

/** The first minutes of a trace at `rate` times its own. */
async function traceAt(file: string, rate: number, minutes: number): Promise<Workload> {
  return scaleRate(await readTrace(file, minutes * rate), rate);
}

function withKvTokens(fleet: FleetSpec, kvTokens: number): FleetSpec {
  const engines = fleet.engines.map((engine) => ({ ...engine, profile: { ...engine.profile, kvTokens } }));
  return { text: `${fleet.text} with ${kvTokens} KV tokens`, engines };
}
