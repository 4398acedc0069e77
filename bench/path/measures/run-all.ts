import { type Host, host } from "../../support/host.ts";
import type { Verdict } from "../verdict.ts";
import type { Measure, MeasurePlan } from "./measure.ts";

/** What a run of several measures says. */
export interface RunReport {
  readonly host: Host;
  readonly rounds: number;
  /** What each measure found, by its name; one that broke off is not among them. */
  readonly measures: Readonly<Record<string, object>>;
  readonly verdicts: readonly Verdict[];
  /** Measures that broke off or lack a peer, with why. */
  readonly failures: readonly string[];
}

/** Runs measures one after the other; one that breaks off does not end the run. @param tell Gets each one's text. */
export async function runAll(
  measures: readonly Measure[],
  plan: MeasurePlan,
  tell: (name: string, text: string) => void,
): Promise<RunReport> {
  const results: Record<string, object> = {};
  const verdicts: Verdict[] = [];
  const failures: string[] = [];
  for (const measure of measures) {
    plan.bench.progress(`measure: ${measure.name}`);
    try {
      const { text, result, hasFailed, verdicts: own } = await measure.run(plan);
      tell(measure.name, text);
      results[measure.name] = result;
      verdicts.push(...own);
      if (hasFailed) failures.push(`${measure.name}: not all peers were measured`);
    } catch (error) {
      failures.push(`${measure.name}: ${(error as Error).message}`);
      tell(measure.name, `FAILED: ${(error as Error).message}`);
    }
  }
  return { host: host(), rounds: plan.rounds, measures: results, verdicts, failures };
}
