/** Faults of every kind under load, and what must hold all the same (docs/proofs.md). */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { coreText, runCore } from "./chaos/core.ts";
import { FAULT_KINDS, type FaultKind } from "./chaos/faults.ts";
import { promisesOf } from "./chaos/promises.ts";
import { chaosText, countRecord } from "./chaos/report.ts";
import { type ChaosPlan, runChaos } from "./chaos/run.ts";
import { host } from "./support/host.ts";
import { positive } from "./support/positive.ts";

const { values } = parseArgs({
  options: {
    engines: { type: "string", default: "built-in" },
    minutes: { type: "string" },
    "warm-up": { type: "string", default: "20" },
    clients: { type: "string" },
    faults: { type: "string" },
    seed: { type: "string", default: "1" },
    core: { type: "boolean", default: false },
    requests: { type: "string", default: "1000000" },
    keep: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});

/** What each kind of engine bears on a small machine, and the faults that can be done to it. */
const FORMS = {
  "built-in": { engineCount: 8, clients: 200, minutes: 10, faults: FAULT_KINDS },
  llamacpp: {
    engineCount: 3,
    clients: 24,
    minutes: 2,
    faults: ["kill", "restart", "short freeze", "long freeze", "remove", "drain"],
  },
} as const satisfies Record<ChaosPlan["engines"], object>;

async function main(): Promise<void> {
  const seed = positive("seed", values.seed);
  if (values.core) return runCoreAlone(seed);
  const engines = values.engines;
  if (engines !== "built-in" && engines !== "llamacpp") {
    throw new Error(`--engines ${engines}: there are ${Object.keys(FORMS).join(", ")}`);
  }
  const form = FORMS[engines];
  const minutes = positive("minutes", values.minutes ?? String(form.minutes));
  const scratch = await mkdtemp(join(tmpdir(), "evenkeel-chaos-"));
  const plan: ChaosPlan = {
    engines,
    engineCount: form.engineCount,
    clients: positive("clients", values.clients ?? String(form.clients)),
    warmUpMs: 1000 * positive("warm-up", values["warm-up"]),
    durationMs: 60_000 * minutes,
    faults: values.faults?.split(",").map(faultKind) ?? form.faults,
    seed,
    scratch,
    progress: (text) => void process.stderr.write(`${text}\n`),
  };
  const record = await runChaos(plan).finally(() =>
    values.keep ? undefined : rm(scratch, { recursive: true, force: true }),
  );
  if (values.keep) plan.progress(`files in ${scratch}`);
  const promises = promisesOf(record);
  const { clients, engineCount } = plan;
  const title = { host: host(), engines: `${engineCount} ${engines} engines`, clients, minutes, seed };
  const result = { ...title, ...countRecord(record), promises };
  if (promises.some(({ isKept }) => !isKept)) process.exitCode = 1;
  process.stdout.write(`${values.json ? JSON.stringify(result) : chaosText(result)}\n`);
}

function runCoreAlone(seed: number): void {
  const rows = runCore(positive("requests", values.requests), seed);
  const result = { host: host(), seed, rows };
  process.stdout.write(`${values.json ? JSON.stringify(result) : coreText(result)}\n`);
}

function faultKind(name: string): FaultKind {
  const kind = FAULT_KINDS.find((known) => known === name);
  if (kind === undefined) throw new Error(`--faults ${name}: there are ${FAULT_KINDS.join(", ")}`);
  return kind;
}

try {
  await main();
} catch (error) {
  process.stderr.write(`error: ${(error as Error).message}\n`);
  process.exitCode = 1;
}
