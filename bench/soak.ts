/** A steady load for a long time: the balancer's heap must stay flat (docs/proofs.md). */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { judge, soakText } from "./soak/report.ts";
import { runSoak, type SoakPlan } from "./soak/run.ts";
import { host } from "./support/host.ts";
import { positive } from "./support/positive.ts";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "30" },
    // A third of the run unless it is said.
    "warm-up": { type: "string" },
    rate: { type: "string", default: "60" },
    seed: { type: "string", default: "1" },
    json: { type: "boolean", default: false },
  },
});

/** Between two looks at the heap, each of which collects all garbage and so holds everything up. */
const SAMPLE_MS = 15_000;
/** A short run still needs enough of them for a slope. */
const LEAST_SAMPLES = 12;

async function main(): Promise<void> {
  const minutes = positive("minutes", values.minutes);
  const scratch = await mkdtemp(join(tmpdir(), "evenkeel-soak-"));
  const plan: SoakPlan = {
    minutes,
    warmUpMinutes: values["warm-up"] === undefined ? minutes / 3 : positive("warm-up", values["warm-up"]),
    requestsPerSecond: positive("rate", values.rate),
    sampleMs: Math.min(SAMPLE_MS, (60_000 * minutes) / LEAST_SAMPLES),
    seed: positive("seed", values.seed),
    scratch,
    progress: (text) => void process.stderr.write(`${text}\n`),
  };
  const record = await runSoak(plan).finally(() => rm(scratch, { recursive: true, force: true }));
  const { warmUpMinutes, requestsPerSecond } = plan;
  const result = judge(record, { host: host(), minutes, warmUpMinutes, requestsPerSecond });
  if (!result.isFlat || !result.isServed) process.exitCode = 1;
  process.stdout.write(`${values.json ? JSON.stringify(result) : soakText(result)}\n`);
}

try {
  await main();
} catch (error) {
  process.stderr.write(`error: ${(error as Error).message}\n`);
  process.exitCode = 1;
}
