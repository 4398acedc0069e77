import { type Host, host } from "../support/host.ts";
import { cpuMsBetween } from "../support/process-tree.ts";
import { median, sum } from "../support/statistics.ts";
import { Contender, type PhaseCost } from "./contender.ts";
import { type RequestLoad, runStreams } from "./load.ts";
import type { Origins } from "./origins.ts";
import type { ClientSettings, Peer } from "./peer.ts";
import { WORKLOAD, type Workload } from "./workload.ts";

/** Both phases of one round. */
interface Round {
  readonly requests: PhaseCost;
  readonly events: PhaseCost;
  /** What all other peers together used meanwhile, as a share of one core. */
  readonly othersShare: number;
}

/** What is known of one peer. */
export interface PeerResult {
  readonly name: string;
  readonly settings: string;
  /** The load it was put under. */
  readonly client: Omit<ClientSettings, "headers">;
  readonly isLlmRouter: boolean;
  /** Undefined: it could not be installed. */
  readonly version: string | undefined;
  /** Medians over the rounds; undefined: it failed. */
  readonly medians: Medians | undefined;
  readonly rounds: readonly Round[];
  /** Why there are no medians. */
  readonly failure: string | undefined;
}

export interface Medians {
  readonly cpuUsPerRequest: number;
  readonly cpuUsPerEvent: number;
  readonly requestsPerSecond: number;
  readonly eventsPerSecond: number;
  /** At the end of the last round. */
  readonly residentBytes: number;
}

/** The two of them that the targets speak of. */
export type Cost = "cpuUsPerRequest" | "cpuUsPerEvent";

/** The whole run. */
export interface PathResult {
  readonly host: Host;
  readonly workload: Workload;
  readonly rounds: number;
  readonly peers: readonly PeerResult[];
}

/** What a run needs from around it. */
export interface Bench {
  readonly origins: Origins;
  readonly requests: RequestLoad;
  /** Folder for the files of the run. */
  readonly scratch: string;
  /** Tells somebody who waits what is going on. */
  progress(text: string): void;
}

/** Enough for just-in-time compilers and connection pools to settle. */
const WARM_UP_SECONDS = 3;

/** A peer on its way through the run. */
interface Entry {
  readonly peer: Peer;
  version: string | undefined;
  contender: Contender | undefined;
  failure: string | undefined;
  residentBytes: number;
  readonly rounds: Round[];
}

/** Runs all peers side by side: every round measures each of them, and each round begins with another one. */
export async function runPath(bench: Bench, peers: readonly Peer[], rounds: number): Promise<PathResult> {
  const entries: Entry[] = peers.map((peer) => ({
    peer,
    version: undefined,
    contender: undefined,
    failure: undefined,
    residentBytes: 0,
    rounds: [],
  }));
  try {
    for (const entry of entries) await attempt(bench, entry, () => bringUp(bench, entry));
    for (let round = 0; round < rounds; round++) {
      bench.progress(`round ${round + 1} of ${rounds}`);
      for (let i = 0; i < entries.length; i++) {
        const entry = entries[(round + i) % entries.length] as Entry;
        await attempt(bench, entry, () => measureRound(bench, entry, entries));
      }
    }
  } finally {
    await Promise.all(entries.map(({ contender }) => contender?.stop()));
  }
  return { host: host(), workload: WORKLOAD, rounds, peers: entries.map(resultOf) };
}

/** Does one step of a peer that has not failed yet; a failure is its result, not the end of the run. */
async function attempt(bench: Bench, entry: Entry, step: () => Promise<void>): Promise<void> {
  if (entry.failure !== undefined) return;
  try {
    await step();
  } catch (error) {
    entry.failure = (error as Error).message;
    bench.progress(`${entry.peer.name} failed: ${entry.failure}`);
    // It is out: its work would only disturb the others.
    await entry.contender?.stop();
    entry.contender = undefined;
  }
}

async function bringUp(bench: Bench, entry: Entry): Promise<void> {
  bench.progress(`starting ${entry.peer.name}`);
  entry.version = await entry.peer.install();
  entry.contender = await Contender.start(entry.peer, bench.origins.ports, bench.scratch);
  await measureRequests(bench, entry.contender, WARM_UP_SECONDS);
  await measureEvents(entry.contender);
}

async function measureRound(bench: Bench, entry: Entry, entries: readonly Entry[]): Promise<void> {
  const contender = entry.contender as Contender;
  const others = entries.flatMap(({ contender: other }) => (other === undefined || other === contender ? [] : [other]));
  const othersCpuMs = stopwatchOf(others);
  const servedBefore = sum(await bench.origins.served());
  const startMs = performance.now();
  const requests = await measureRequests(bench, contender, WORKLOAD.requestSeconds);
  const events = await measureEvents(contender);
  const tookMs = performance.now() - startMs;
  const othersShare = othersCpuMs() / tookMs;
  const served = sum(await bench.origins.served()) - servedBefore;
  const answered = requests.units + contender.client.streams;
  if (served < answered) throw new Error(`${answered} answers came, but the origins gave only ${served}`);
  entry.rounds.push({ requests, events, othersShare });
  entry.residentBytes = contender.residentBytes();
}

/** @returns what tells the CPU time that they have used since; of one that has ended meanwhile nothing is known. */
function stopwatchOf(contenders: readonly Contender[]): () => number {
  const before = contenders
    .filter(({ isRunning }) => isRunning)
    .map((contender) => ({ contender, usage: contender.usage() }));
  return () =>
    sum(before.map(({ contender, usage }) => (contender.isRunning ? cpuMsBetween(usage, contender.usage()) : 0)));
}

function measureRequests(bench: Bench, contender: Contender, seconds: number): Promise<PhaseCost> {
  const { client } = contender;
  return named(
    "requests",
    contender.measure((port) => bench.requests.run(port, seconds, client)),
  );
}

function measureEvents(contender: Contender): Promise<PhaseCost> {
  const { streams, headers } = contender.client;
  return named(
    "events",
    contender.measure((port) => runStreams(port, streams, headers)),
  );
}

/** Says of a failure in which phase it came. */
async function named<T>(phase: string, step: Promise<T>): Promise<T> {
  try {
    return await step;
  } catch (error) {
    throw new Error(`${phase}: ${(error as Error).message}`);
  }
}

function resultOf({ peer, version, failure, rounds, residentBytes }: Entry): PeerResult {
  const medianOf = (value: (round: Round) => number): number => median(rounds.map(value));
  const medians =
    failure !== undefined
      ? undefined
      : {
          cpuUsPerRequest: medianOf(({ requests }) => requests.cpuUsPerUnit),
          cpuUsPerEvent: medianOf(({ events }) => events.cpuUsPerUnit),
          requestsPerSecond: medianOf(({ requests }) => requests.unitsPerSecond),
          eventsPerSecond: medianOf(({ events }) => events.unitsPerSecond),
          residentBytes,
        };
  const { connections, streams } = WORKLOAD;
  const { name, settings, client = { connections, streams }, isLlmRouter = false } = peer;
  return { name, settings, client, isLlmRouter, version, medians, rounds, failure };
}
