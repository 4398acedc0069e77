import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { selfTimeTable } from "./path/cpu-profile.ts";
import { RequestLoad } from "./path/load.ts";
import { Origins } from "./path/origins.ts";
import type { Peer } from "./path/peer.ts";
import { PEERS } from "./path/peers/index.ts";
import { profilePath } from "./path/profile.ts";
import { pathText } from "./path/report.ts";
import { type Bench, runPath } from "./path/run.ts";

/** Rows of a profile's table. */
const PROFILE_ROWS = 30;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "5" },
      peers: { type: "string", default: PEERS.map(({ name }) => name).join(",") },
      json: { type: "boolean", default: false },
      prof: { type: "boolean", default: false },
    },
  });
  const rounds = Number(values.rounds);
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error(`--rounds ${values.rounds}: expected a count`);
  const peers = values.peers.split(",").map(findPeer);
  const scratch = await mkdtemp(join(tmpdir(), "evenkeel-path-"));
  const origins = await Origins.start();
  try {
    const requests = await RequestLoad.create(scratch);
    const progress = (text: string): void => void process.stderr.write(`${text}\n`);
    const bench: Bench = { origins, requests, scratch, progress };
    process.stdout.write(
      `${values.prof ? await profiled(bench, values.json) : await measured(bench, peers, rounds, values.json)}\n`,
    );
  } finally {
    origins.stop();
    // Profiles are there to be looked at.
    if (!values.prof) await rm(scratch, { recursive: true });
  }
}

async function measured(bench: Bench, peers: readonly Peer[], rounds: number, asJson: boolean): Promise<string> {
  const result = await runPath(bench, peers, rounds);
  if (result.peers.some(({ failure }) => failure !== undefined)) process.exitCode = 1;
  return asJson ? JSON.stringify(result) : pathText(result);
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

function findPeer(name: string): Peer {
  const peer = PEERS.find((known) => known.name === name);
  if (peer === undefined) throw new Error(`no peer "${name}"; known: ${PEERS.map((known) => known.name).join(", ")}`);
  return peer;
}

try {
  await main();
} catch (error) {
  process.stderr.write(`error: ${(error as Error).message}\n`);
  process.exitCode = 1;
}
