import {
  joinRuns,
  parseFleet,
  type Report,
  resizeFleet,
  type Simulation,
  type SimulationResult,
  type SweepPoint,
  summarize,
  sweep,
} from "../../sim/index.ts";
import type { ProgressBar } from "./progress-bar.ts";
import type { RunPool } from "./run-pool.ts";
import type { ReplicaSettings, SimulateSettings } from "./settings.ts";

/** What came of a command: the report, and what to say beside it. */
export interface SimulateOutcome {
  readonly report: Report;
  /** About requests that went another way than the usual, in sentences. */
  readonly notes: readonly string[];
}

/** Runs everything that is asked for. @throws WorkloadError or RangeError when it cannot be. */
export async function simulateAll(
  settings: SimulateSettings,
  pool: RunPool,
  progress: ProgressBar,
): Promise<SimulateOutcome> {
  const { policies, fleet, rate, slo, base, command } = settings;
  const notes = new Set<string>();
  const run = async (policy: string, runRate: number, runFleet: string): Promise<SimulationResult> => {
    const runs = await Promise.all(
      settings.seeds.map((seed) => runOne({ policy, seed, rate: runRate, fleet: runFleet })),
    );
    for (const each of runs) for (const note of notesOn(each)) notes.add(note);
    return joinRuns(runs as [Simulation, ...Simulation[]]);
  };
  const runOne = async (spec: Parameters<RunPool["run"]>[0]): Promise<Simulation> => {
    const advance = progress.add();
    const simulation = await pool.run(spec, advance);
    advance(1);
    return simulation;
  };
  const sweepOne = async (policy: string): Promise<SweepPoint[]> => {
    if (settings.sweep === undefined) return [];
    const { variable } = settings.sweep;
    return await sweep(settings.sweep, async (value) => {
      const swept = variable === "rate" ? run(policy, value, fleet) : run(policy, rate, sized(fleet, value));
      return summarize(await swept, slo);
    });
  };
  const points = (await Promise.all(policies.map(sweepOne))).flat();
  const results =
    settings.sweep === undefined ? await Promise.all(policies.map((policy) => run(policy, rate, fleet))) : [];
  const shown = { command, settings: settingsShown(settings), slo, results, base, sweep: points };
  return { report: shown, notes: [...notes] };
}

function sized(fleet: string, engines: number): string {
  return resizeFleet(parseFleet(fleet), engines).text;
}

function notesOn({ policy, fates, requests }: Simulation): string[] {
  const { oversized, lost, unfinished } = fates;
  const notes: string[] = [];
  if (oversized > 0)
    notes.push(
      `${oversized} of ${requests.length} requests are longer than the smallest engine's KV cache; they were not sent.`,
    );
  if (lost > 0) notes.push(`${policy}: ${lost} of ${requests.length} requests were lost with their endpoint.`);
  if (unfinished > 0)
    notes.push(`${policy}: ${unfinished} of ${requests.length} requests never ended: no endpoint was left for them.`);
  return notes;
}

function settingsShown({ runs, fleet, rate, seeds, sweep: spec }: SimulateSettings): Record<string, string> {
  const { input, events, replicas } = runs;
  return {
    Trace: input.trace,
    ...(input.startMs !== undefined && { Start: `${input.startMs / 1000} s` }),
    ...(input.durationMs !== undefined && { Duration: `${input.durationMs / 1000} s` }),
    Fleet: fleet,
    ...(spec?.variable !== "rate" && { Rate: `x${rate}` }),
    ...(events !== "" && { Events: events }),
    ...(replicas.count > 1 && { Balancers: balancersShown(replicas) }),
    [seeds.length === 1 ? "Seed" : "Seeds"]: seeds.join(", "),
  };
}

function balancersShown({ count, dealing, exchangeMs }: ReplicaSettings): string {
  const exchange = exchangeMs === undefined ? "each for itself" : `exchanging every ${exchangeMs} ms`;
  return `${count}, requests dealt ${dealing.replaceAll("_", " ")}, ${exchange}`;
}
