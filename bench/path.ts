import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { selfTimeTable } from "./path/cpu-profile.ts";
import { RequestLoad } from "./path/load.ts";
import { MEASURES } from "./path/measures/index.ts";
import type { MeasurePlan } from "./path/measures/measure.ts";
import { runAll } from "./path/measures/run-all.ts";
import { Origins } from "./path/origins.ts";
import { PEERS, RECORD_PEERS } from "./path/peers/index.ts";
import { profilePath } from "./path/profile.ts";
import type { Bench } from "./path/run.ts";
import { verdictText } from "./path/verdict.ts";
import { positive } from "./support/positive.ts";

/** Rows of a profile's table. */
const PROFILE_ROWS = 30;

const OPTIONS = {
  /** Which rows of the table of targets, by name. */
  measures: { type: "string", default: namesOf(MEASURES) },
  peers: { type: "string", default: namesOf(PEERS) },
  /** Adds the peers that are measured for the record only. */
  record: { type: "boolean", default: false },
  rounds: { type: "string", default: "5" },
  /** Requests of the memory measure. */
  requests: { type: "string", default: "1000000" },
  json: { type: "boolean", default: false },
  /** Profiles evenkeel instead. */
  prof: { type: "boolean", default: false },
} as const;

async function main(): Promise<void> {
  const { values } = parseArgs({ options: OPTIONS });
  const measures = chosen("measure", MEASURES, values.measures);
  const named = chosen("peer", [...PEERS, ...RECORD_PEERS], values.peers);
  const peers = named.filter((peer) => PEERS.includes(peer));
  const recordPeers = RECORD_PEERS.filter((peer) => values.record || named.includes(peer));
  const rounds = Math.ceil(positive("rounds", values.rounds));
  const memoryRequests = positive("requests", values.requests);
  const scratch = await mkdtemp(join(tmpdir(), "evenkeel-path-"));
  const origins = await Origins.start();
  try {
    const requests = await RequestLoad.create(scratch);
    const progress = (text: string): void => void process.stderr.write(`${text}\n`);
    const bench: Bench = { origins, requests, scratch, progress };
    if (values.prof) print(await profiled(bench, values.json));
    else await measure(measures, { bench, peers, recordPeers, rounds, memoryRequests }, values.json);
  } finally {
    origins.stop();
    // Profiles are there to be looked at.
    if (!values.prof) await rm(scratch, { recursive: true });
  }
}

async function measure(measures: typeof MEASURES, plan: MeasurePlan, asJson: boolean): Promise<void> {
  const report = await runAll(measures, plan, (name, text) => {
    if (!asJson) print(`${name}\n${"=".repeat(name.length)}\n${text}\n`);
  });
  if (report.failures.length > 0) process.exitCode = 1;
  if (asJson) print(JSON.stringify(report));
  else print([verdictText(report.verdicts), ...report.failures.map((failure) => `FAILED: ${failure}`)].join("\n"));
}

async function profiled(bench: Bench, asJson: boolean): Promise<string> {
  const phases = await profilePath(bench);
  if (asJson) return JSON.stringify(phases);
  return phases
    .map(({ phase, selfTimes, units, file }) => {
      const table = selfTimeTable(selfTimes, PROFILE_ROWS, units);
      return `${phase}: ${units}, profile in ${file}\n${table}`;
    })
    .join("\n\n");
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function namesOf(all: readonly { readonly name: string }[]): string {
  return all.map(({ name }) => name).join(",");
}

/** Those of `all` whose names stand in `names`, with commas between. @throws when there is none of a name. */
function chosen<Named extends { readonly name: string }>(kind: string, all: readonly Named[], names: string): Named[] {
  return names.split(",").map((name) => {
    const found = all.find((known) => known.name === name);
    if (found === undefined) throw new Error(`no ${kind} "${name}"; known: ${namesOf(all)}`);
    return found;
  });
}

try {
  await main();
} catch (error) {
  process.stderr.write(`error: ${(error as Error).message}\n`);
  process.exitCode = 1;
}
