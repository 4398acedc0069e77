import { textTable } from "../support/table.ts";

/** The part of V8's .cpuprofile that is read; times in microseconds. */
export interface CpuProfile {
  readonly nodes: readonly ProfileNode[];
  /** On the clock of `process.hrtime`. */
  readonly startTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

interface ProfileNode {
  readonly id: number;
  readonly callFrame: {
    readonly functionName: string;
    readonly url: string;
    readonly lineNumber: number;
  };
}

/** Time that was spent in a function itself, what it calls not included. */
export interface SelfTime {
  readonly label: string;
  readonly ms: number;
}

/** Self time per function between two moments of `process.hrtime`, in microseconds; idling is left out; longest first. */
export function selfTimes(profile: CpuProfile, fromUs: number, toUs: number): SelfTime[] {
  const labels = new Map(profile.nodes.map((node) => [node.id, labelOf(node)]));
  const spentUs = new Map<string, number>();
  let atUs = profile.startTime;
  for (const [index, deltaUs] of profile.timeDeltas.entries()) {
    atUs += deltaUs;
    // A sample stands for the time up to the next one.
    const label = labels.get(profile.samples[index] as number) as string;
    const durationUs = profile.timeDeltas[index + 1] ?? 0;
    if (atUs < fromUs || atUs > toUs || label === IDLE) continue;
    spentUs.set(label, (spentUs.get(label) ?? 0) + durationUs);
  }
  return [...spentUs].map(([label, us]) => ({ label, ms: us / 1000 })).sort((a, b) => b.ms - a.ms);
}

const IDLE = "(idle)";

/** The `count` longest as a table. @param units What the time was spent on: answers or events. */
export function selfTimeTable(times: readonly SelfTime[], count: number, units: number): string {
  const totalMs = times.reduce((total, { ms }) => total + ms, 0);
  const row = ({ label, ms }: SelfTime): string[] => [
    label,
    ms.toFixed(1),
    `${((100 * ms) / totalMs).toFixed(1)} %`,
    ((1000 * ms) / units).toFixed(2),
  ];
  return textTable([
    ["function", "self ms", "share", "us each"],
    ...times.slice(0, count).map(row),
    row({ label: "all", ms: totalMs }),
  ]);
}

function labelOf({ callFrame: { functionName, url, lineNumber } }: ProfileNode): string {
  const name = functionName === "" ? "(anonymous)" : functionName;
  if (url === "") return name;
  const place = url.replace(/^file:\/\//, "").replace(/^.*?\/(dist|node_modules)\//, "$1/");
  return `${name} ${place}:${lineNumber + 1}`;
}
