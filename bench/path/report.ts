import { hostText } from "../support/host.ts";
import { figure, textTable } from "../support/table.ts";
import { PEERS, RECORD_PEERS } from "./peers/index.ts";
import type { Cost, Medians, PathResult, PeerResult } from "./run.ts";
import type { Workload } from "./workload.ts";

/** What the ratios are multiples of. */
export const REFERENCE = "nginx";

/** A peer that is slower than this share of the pace of the origins is behind it. */
const PACE_SHARE = 0.9;

/** The run as text. */
export function pathText(result: PathResult): string {
  const { workload, rounds, peers } = result;
  const reference = peers.find(({ name }) => name === REFERENCE)?.medians;
  return [
    hostText(result.host),
    `Requests: ${workload.connections} connections for ${workload.requestSeconds} s, body of 2 kB. Events: ` +
      `${workload.streams} streams, ${workload.eventGapMs} ms between events. Medians of ${rounds} rounds; CPU of the whole process tree.`,
    "",
    textTable([
      ["peer", "version", "us/request", "x nginx", "us/event", "x nginx", "requests/s", "events/s", "resident MB"],
      ...peers.map((peer) => row(peer, reference)),
    ]),
    "",
    ...peers.map((peer) => `${peer.name}: ${settingsText(peer, workload)}`),
    ...peers.flatMap(({ name, failure }) => (failure === undefined ? [] : [`${name} FAILED: ${failure}`])),
    ...absenceLines(peers),
    ...paceLines(peers, workload),
    ...disturbanceLines(peers),
  ].join("\n");
}

function row({ name, version = "-", medians }: PeerResult, reference: Medians | undefined): string[] {
  if (medians === undefined) return [name, version, "failed"];
  const ratio = (cost: Cost): string => figure(reference && medians[cost] / reference[cost], 2);
  return [
    name,
    version,
    figure(medians.cpuUsPerRequest, 1),
    ratio("cpuUsPerRequest"),
    figure(medians.cpuUsPerEvent, 1),
    ratio("cpuUsPerEvent"),
    figure(medians.requestsPerSecond, 0),
    figure(medians.eventsPerSecond, 0),
    figure(medians.residentBytes / 1e6, 0),
  ];
}

function settingsText({ settings, client: { connections, streams } }: PeerResult, workload: Workload): string {
  const isAsOthers = connections === workload.connections && streams === workload.streams;
  return isAsOthers ? settings : `${settings}; only ${connections} connections and ${streams} streams`;
}

/** Who could have been measured and was not. */
function absenceLines(peers: readonly PeerResult[]): string[] {
  const measured = new Set(peers.map(({ name }) => name));
  const absent = [...PEERS, ...RECORD_PEERS].map(({ name }) => name).filter((name) => !measured.has(name));
  return absent.length === 0 ? [] : [`Not in this run: ${absent.join(", ")}`];
}

/** Who did not bring events as fast as the origins sent them, which flatters them. */
function paceLines(peers: readonly PeerResult[], { eventGapMs }: Workload): string[] {
  const behind = peers.filter(({ medians, client }) => {
    const pace = (client.streams * 1000) / eventGapMs;
    return medians !== undefined && medians.eventsPerSecond < PACE_SHARE * pace;
  });
  if (behind.length === 0) return [];
  const names = behind.map(({ name }) => name).join(", ");
  return [`Behind the pace of the events: ${names}. Events that wait are sent together: each is cheaper than on time.`];
}

/** How much of a core the peers took that were not being measured. */
function disturbanceLines(peers: readonly PeerResult[]): string[] {
  const shares = peers.flatMap(({ rounds }) => rounds.map(({ othersShare }) => othersShare));
  if (shares.length === 0) return [];
  const most = figure(100 * Math.max(...shares), 1);
  return [`While one was measured, all others together used at most ${most} % of a core.`];
}
