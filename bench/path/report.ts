import { hostText } from "../support/host.ts";
import { figure, textTable } from "../support/table.ts";
import type { Medians, PathResult, PeerResult } from "./run.ts";

/** What the path may cost at most, as a multiple of the reference peer. */
const GOALS: readonly { readonly unit: string; readonly most: number; readonly cost: keyof Medians }[] = [
  { unit: "request", most: 3.5, cost: "cpuUsPerRequest" },
  { unit: "streamed event", most: 2.4, cost: "cpuUsPerEvent" },
];

/** Peers that the ratios and goals speak of. */
const REFERENCE = "nginx";
const OURS = "evenkeel";

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
    ...peers.map(({ name, settings }) => `${name}: ${settings}`),
    ...peers.flatMap(({ name, failure }) => (failure === undefined ? [] : [`${name} FAILED: ${failure}`])),
    "",
    ...goalLines(peers, reference),
  ].join("\n");
}

function row({ name, version = "-", medians }: PeerResult, reference: Medians | undefined): string[] {
  if (medians === undefined) return [name, version, "failed"];
  const ratio = (cost: keyof Medians): string => figure(ratioOf(medians, reference, cost), 2);
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

function goalLines(peers: readonly PeerResult[], reference: Medians | undefined): string[] {
  const ours = peers.find(({ name }) => name === OURS)?.medians;
  return GOALS.map(({ unit, most, cost }) => {
    const ratio = ours === undefined ? undefined : ratioOf(ours, reference, cost);
    const verdict = ratio === undefined ? "not measured" : ratio <= most ? "met" : "missed";
    return `Goal per ${unit}: at most ${most} x ${REFERENCE}: ${figure(ratio, 2)}, ${verdict}`;
  });
}

/** Undefined: there is nothing to compare with. */
function ratioOf(medians: Medians, reference: Medians | undefined, cost: keyof Medians): number | undefined {
  return reference === undefined ? undefined : medians[cost] / reference[cost];
}
