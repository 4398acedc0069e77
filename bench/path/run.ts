import { type Host, host } from "../support/host.ts";
import { cpuMsBetween } from "../support/process-tree.ts";
import { median, sum } from "../support/statistics.ts";
import { Contender, type PhaseCost } from "./contender.ts";
import { type RequestLoad, runStreams } from "./load.ts";
import type { Origins } from "./origins.ts";
import type { ClientSettings, Peer } from "./peer.ts";
import { type Lane, sideBySide } from "./side-by-side.ts";
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

/** What one round saw of a peer. */
interface Sample {
  readonly round: Round;
  readonly residentBytes: number;
}

/** Runs all peers side by side: every round measures each of them, and each round begins with another one. */
export async function runPath(bench: Bench, peers: readonly Peer[], rounds: number): Promise<PathResult> {
  const versions = new Map<string, string>();
  const running = new Set<Contender>();
  const lanes = await sideBySide<Contender, Sample>(bench, peers, {
    rounds,
    async enter(peer, version) {
      versions.set(peer.name, version);
      bench.progress(`starting ${peer.name}`);
      const contender = await Contender.start(peer, bench.origins.ports, bench.scratch);
      running.add(contender);
      try {
        await measureRequests(bench, contender, WARM_UP_SECONDS);
        await measureEvents(contender);
        return contender;
      } catch (error) {
        await stop(contender, running);
        throw error;
      }
    },
    sample: (contender) => measureRound(bench, contender, running),
    leave: (contender) => stop(contender, running),
  });
  const results = lanes.map((lane, i) => resultOf(peers[i] as Peer, versions.get(lane.name), lane));
  return { host: host(), workload: WORKLOAD, rounds, peers: results };
}

function stop(contender: Contender, running: Set<Contender>): Promise<void> {
  running.delete(contender);
  return contender.stop();
}

async function measureRound(bench: Bench, contender: Contender, running: ReadonlySet<Contender>): Promise<Sample> {
  const othersCpuMs = stopwatchOf([...running].filter((other) => other !== contender));
  const servedBefore = sum(await bench.origins.served());
  const startMs = performance.now();
  const requests = await measureRequests(bench, contender, WORKLOAD.requestSeconds);
  const events = await measureEvents(contender);
  const tookMs = performance.now() - startMs;
  const othersShare = othersCpuMs() / tookMs;
  const served = sum(await bench.origins.served()) - servedBefore;
  const answered = requests.units + contender.client.streams;
  if (served < answered) throw new Error(`${answered} answers came, but the origins gave only ${served}`);
  return { round: { requests, events, othersShare }, residentBytes: contender.residentBytes() };
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

function resultOf(peer: Peer, version: string | undefined, { samples, failure }: Lane<Sample>): PeerResult {
  const rounds = samples.map(({ round }) => round);
  const medianOf = (value: (round: Round) => number): number => median(rounds.map(value));
  const medians =
    failure !== undefined
      ? undefined
      : {
          cpuUsPerRequest: medianOf(({ requests }) => requests.cpuUsPerUnit),
          cpuUsPerEvent: medianOf(({ events }) => events.cpuUsPerUnit),
          requestsPerSecond: medianOf(({ requests }) => requests.unitsPerSecond),
          eventsPerSecond: medianOf(({ events }) => events.unitsPerSecond),
          residentBytes: samples.at(-1)?.residentBytes ?? 0,
        };
  const { connections, streams } = WORKLOAD;
  const { name, settings, client = { connections, streams }, isLlmRouter = false } = peer;
  return { name, settings, client, isLlmRouter, version, medians, rounds, failure };
}
