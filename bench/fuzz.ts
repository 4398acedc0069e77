/** Any input from outside: no crash, no hang, no leak, and a clear word for what is wrong (docs/proofs.md). */

import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { answers } from "./fuzz/answers.ts";
import { config } from "./fuzz/config.ts";
import { watchForHang } from "./fuzz/hang-watch.ts";
import { http } from "./fuzz/http.ts";
import { metrics } from "./fuzz/metrics.ts";
import { type FuzzResult, fuzzText } from "./fuzz/report.ts";
import { runInProcesses } from "./fuzz/run-processes.ts";
import { sse } from "./fuzz/sse.ts";
import { type FuzzRow, type FuzzTarget, runTarget } from "./fuzz/target.ts";
import { host } from "./support/host.ts";
import { positive } from "./support/positive.ts";

/** The longest first: they run side by side. */
const TARGETS: readonly FuzzTarget[] = [answers, config, http, sse, metrics];

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "100000" },
    seed: { type: "string", default: "1" },
    targets: { type: "string", default: TARGETS.map(({ name }) => name).join(",") },
    path: { type: "string" },
    json: { type: "boolean", default: false },
  },
});

async function main(): Promise<void> {
  const seed = positive("seed", values.seed);
  const runs = positive("runs", values.runs);
  const targets = values.targets.split(",").map(findTarget);
  const [first, ...others] = targets;
  const rows =
    first !== undefined && others.length === 0 ? [await runHere(first, runs, seed)] : await runAside(targets);
  const result: FuzzResult = { host: host(), seed, rows };
  if (rows.some(({ failure }) => failure !== undefined)) process.exitCode = 1;
  process.stdout.write(`${values.json ? JSON.stringify(result) : fuzzText(result)}\n`);
}

async function runHere(target: FuzzTarget, runs: number, seed: number): Promise<FuzzRow> {
  const watch = watchForHang(target.name, seed);
  const row = await runTarget(target, { runs, seed, path: values.path, beat: watch.beat });
  await watch.stop();
  return row;
}

function runAside(targets: readonly FuzzTarget[]): Promise<FuzzRow[]> {
  for (const { name, inputs } of targets) process.stderr.write(`${name}: ${inputs}\n`);
  const names = targets.map(({ name }) => name);
  return runInProcesses(names, fileURLToPath(import.meta.url), ["--runs", values.runs, "--seed", values.seed]);
}

function findTarget(name: string): FuzzTarget {
  const found = TARGETS.find((target) => target.name === name);
  if (found !== undefined) return found;
  throw new Error(`--targets ${name}: there are ${TARGETS.map((target) => target.name).join(", ")}`);
}

try {
  await main();
} catch (error) {
  process.stderr.write(`error: ${(error as Error).message}\n`);
  process.exitCode = 1;
}
