import { type Host, hostText } from "../support/host.ts";
import { figure, textTable } from "../support/table.ts";
import type { SoakRecord, SoakSample } from "./run.ts";
import { isSignificantlyAbove, type Slope, slopeOf } from "./slope.ts";

/** A soak in figures; `--json` prints exactly this. */
export interface SoakResult extends SoakRecord {
  readonly host: Host;
  readonly minutes: number;
  readonly warmUpMinutes: number;
  readonly requestsPerSecond: number;
  /** Of the heap after collections, buffers included, in KiB per minute. */
  readonly heapSlope: Slope;
  readonly heapBound: number;
  /** The same in bytes per request. */
  readonly bytesPerRequest: number;
  /** Of the sockets, per minute. */
  readonly socketSlope: Slope;
  readonly isFlat: boolean;
  readonly isServed: boolean;
}

/**
 * In KiB a minute. A leak keeps a request with what hangs on it, 2 KiB at the least: one in a thousand, at 60 requests
 * a second, makes 7.2 KiB a minute. Less than that is not told apart from a heap that settles; it would take a month
 * to fill a third of a gigabyte.
 */
const LEAKED_BYTES = 2048;
const LEAKED_SHARE = 0.001;

/** Judges what was seen. */
export function judge(
  { samples, ...record }: SoakRecord,
  title: Pick<SoakResult, "host" | "minutes" | "warmUpMinutes" | "requestsPerSecond">,
): SoakResult {
  const steady = samples.filter(({ minutes }) => minutes > title.warmUpMinutes);
  const heapSlope = slopeOf(
    steady.map(({ minutes, heapBytes, externalBytes }) => [minutes, (heapBytes + externalBytes) / 1024]),
  );
  const heapBound = (title.requestsPerSecond * 60 * LEAKED_SHARE * LEAKED_BYTES) / 1024;
  const { whole = 0, left = 0, ...others } = record.endings;
  return {
    ...title,
    ...record,
    samples,
    heapSlope,
    heapBound,
    bytesPerRequest: (heapSlope.perUnit * 1024) / (title.requestsPerSecond * 60),
    socketSlope: slopeOf(steady.map(({ minutes, sockets }) => [minutes, sockets])),
    isFlat: !isSignificantlyAbove(heapSlope, heapBound),
    isServed: Object.keys(others).length === 0 && whole > left,
  };
}

const SHOWN_ROWS = 20;

/** The soak as text. */
export function soakText(result: SoakResult): string {
  const { samples, heapSlope, heapBound, socketSlope, endings, failures } = result;
  const every = Math.max(1, Math.floor(samples.length / SHOWN_ROWS));
  const slope = ({ perUnit, standardError }: Slope): string => `${figure(perUnit, 2)} ± ${figure(standardError, 2)}`;
  return [
    hostText(result.host),
    `${result.minutes} minutes at ${result.requestsPerSecond} requests a second, the first ${figure(result.warmUpMinutes, 1)} not counted`,
    "",
    textTable([HEAD, ...samples.filter((_, index) => (index + 1) % every === 0).map(row)]),
    "",
    `Requests: ${Object.entries(endings)
      .map(([ending, count]) => `${ending} ${count}`)
      .join(", ")}`,
    ...failures,
    `Heap: ${slope(heapSlope)} KiB a minute, ${figure(result.bytesPerRequest, 2)} bytes per request; at most ${figure(heapBound, 1)} KiB a minute: ${result.isFlat ? "kept" : "NOT KEPT"}`,
    `Sockets: ${slope(socketSlope)} a minute`,
    `Every request that did not leave was answered: ${result.isServed ? "kept" : "NOT KEPT"}`,
  ].join("\n");
}

const HEAD: readonly string[] = [
  "minute",
  "requests",
  "heap MiB",
  "buffers MiB",
  "RSS MiB",
  "sockets",
  "lag p99",
  "max ms",
];

function row({
  minutes,
  requests,
  heapBytes,
  externalBytes,
  residentBytes,
  sockets,
  lagP99Ms,
  lagMaxMs,
}: SoakSample): string[] {
  return [
    figure(minutes, 1),
    String(requests),
    ...[heapBytes, externalBytes, residentBytes].map((bytes) => figure(bytes / 2 ** 20, 2)),
    String(sockets),
    figure(lagP99Ms, 1),
    figure(lagMaxMs, 1),
  ];
}
