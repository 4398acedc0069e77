/**
 * How far the simulator can be trusted: the same requests go through `evenkeel serve` to built-in engines in real time,
 * and through the simulator (docs/simulator.md).
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type FidelityResult, fidelityText } from "./fidelity/report.ts";
import { type FidelityPlan, runScenario, type ScenarioResult } from "./fidelity/run.ts";
import { SCENARIOS, type ScenarioSource } from "./fidelity/scenarios.ts";
import { faultsOf } from "./fidelity/verdict.ts";
import { host } from "./support/host.ts";
import { ROOT } from "./support/install.ts";
import { positive } from "./support/positive.ts";

const { values } = parseArgs({
  options: {
    // Beside the repository, never in it.
    traces: { type: "string", default: join(ROOT, "..", "shared", "traces") },
    scenarios: { type: "string", default: SCENARIOS.map(({ name }) => name).join(",") },
    minutes: { type: "string", default: "5" },
    speedup: { type: "string", default: "1" },
    simulations: { type: "string", default: "5" },
    "at-once": { type: "string", default: "4" },
    json: { type: "boolean", default: false },
  },
});

async function main(): Promise<void> {
  const minutes = positive("minutes", values.minutes);
  const plan: FidelityPlan = {
    speedup: positive("speedup", values.speedup),
    simulations: positive("simulations", values.simulations),
    atOnce: positive("at-once", values["at-once"]),
    scratch: await mkdtemp(join(tmpdir(), "evenkeel-fidelity-")),
  };
  const scenarios = await runAll(minutes, plan).finally(() => rm(plan.scratch, { recursive: true }));
  const faults = scenarios.flatMap(faultsOf);
  const { speedup, simulations } = plan;
  const result: FidelityResult = { host: host(), minutes, speedup, simulations, scenarios, faults };
  if (faults.length > 0) process.exitCode = 1;
  process.stdout.write(`${values.json ? JSON.stringify(result) : fidelityText(result)}\n`);
}

async function runAll(minutes: number, plan: FidelityPlan): Promise<ScenarioResult[]> {
  const results: ScenarioResult[] = [];
  for (const source of values.scenarios.split(",").map(find)) {
    const scenario = await source.read(values.traces, minutes);
    process.stderr.write(`${scenario.name}: ${scenario.workload.name}\n`);
    results.push(await runScenario(scenario, plan));
  }
  return results;
}

function find(name: string): ScenarioSource {
  const found = SCENARIOS.find((scenario) => scenario.name === name);
  if (found !== undefined) return found;
  throw new Error(`--scenarios ${name}: there are ${SCENARIOS.map((scenario) => scenario.name).join(", ")}`);
}

try {
  await main();
} catch (error) {
  process.stderr.write(`error: ${(error as Error).message}\n`);
  process.exitCode = 1;
}
