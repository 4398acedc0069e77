import { LATENCIES, type LatencyFigure, type PolicyComparison, type ScenarioResult } from "./run.ts";
import { LEAST_DELAY, NOT_HELD } from "./scenarios.ts";

/** How far live and simulated means may be apart. */
export const TOLERANCE = 0.1;

/** Late binding against the same policy without it: 0.4 is less than half. */
export interface Gain {
  readonly live: Readonly<Record<LatencyFigure, number>>;
  readonly simulated: Readonly<Record<LatencyFigure, number>>;
}

/** Undefined: the scenario does not have both. */
export function gainOf({ policies }: ScenarioResult): Gain | undefined {
  const held = policies.find(({ policy }) => policy === LEAST_DELAY.label);
  const notHeld = policies.find(({ policy }) => policy === NOT_HELD.label);
  if (held === undefined || notHeld === undefined) return undefined;
  const ratios = (side: "live" | "simulated"): Record<LatencyFigure, number> => ({
    ttftMs: held[side].ttftMs / notHeld[side].ttftMs,
    tpotMs: held[side].tpotMs / notHeld[side].tpotMs,
    e2eMs: held[side].e2eMs / notHeld[side].e2eMs,
  });
  return { live: ratios("live"), simulated: ratios("simulated") };
}

/** What is wrong with a scenario's result, a sentence each; empty: nothing. */
export function faultsOf(result: ScenarioResult): string[] {
  const { name, shows, policies } = result;
  return [
    ...policies.flatMap((comparison) => lossFaults(name, comparison)),
    ...(shows === "gain" ? gainFaults(result) : policies.flatMap((comparison) => distanceFaults(name, comparison))),
  ];
}

function distanceFaults(scenario: string, { policy, difference }: PolicyComparison): string[] {
  return LATENCIES.filter((key) => !(Math.abs(difference[key]) <= TOLERANCE)).map(
    (key) => `${scenario}, ${policy}: ${key} is ${(100 * difference[key]).toFixed(1)} % off`,
  );
}

function gainFaults(result: ScenarioResult): string[] {
  const gain = gainOf(result);
  const gains = gain !== undefined && [gain.live, gain.simulated].every(({ ttftMs, e2eMs }) => ttftMs < 1 && e2eMs < 1);
  return gains ? [] : [`${result.name}: late binding gains nothing`];
}

function lossFaults(scenario: string, { policy, live, simulated, failures }: PolicyComparison): string[] {
  const place = `${scenario}, ${policy}`;
  return [
    ...(failures.length > 0 ? [`${place}: ${failures.length} requests failed, such as: ${failures[0]}`] : []),
    ...(live.ended === simulated.ended ? [] : [`${place}: ${live.ended} ended live, ${simulated.ended} simulated`]),
  ];
}
