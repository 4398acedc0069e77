import { coreWaitMs } from "../../support/core-wait.ts";
import { cpuMsBetween, type TreeUsage } from "../../support/process-tree.ts";
import { median, sum } from "../../support/statistics.ts";
import { figure, textTable } from "../../support/table.ts";
import type { Contender } from "../contender.ts";
import { type Latencies, PacedLoad } from "../paced-load.ts";
import { evenkeel } from "../peers/evenkeel.ts";
import type { Bench } from "../run.ts";
import { failureLines, type Lane, sideBySide } from "../side-by-side.ts";
import { type Measure, OURS, verdictOf } from "./measure.ts";
import { startWarm } from "./warm.ts";

const MOST_P50_MS = 0.3;
const MOST_P99_MS = 2;

const SECONDS = 4;

/** What one peer added in one round, beside what it took without it. */
interface Added {
  readonly direct: Latencies;
  readonly through: Latencies;
  /** How much of a core the peer used meanwhile, 0 to 1 for one that uses one core. */
  readonly busyShare: number;
  /** How much of the time its threads were ready and had no core: others on the machine slowed it down. */
  readonly waitedShare: number;
}

export const latency: Measure = {
  name: "latency",
  async run({ bench, peers, rounds }) {
    const capacity = await closedLoopRate(bench);
    const load = await PacedLoad.create(bench.scratch, capacity / 2);
    const [originPort = 0] = bench.origins.ports;
    const lanes = await sideBySide<Contender, Added>(bench, peers, {
      rounds,
      enter: (peer) => startWarm(bench, peer),
      sample: (contender) => added(load, originPort, contender),
      leave: (contender) => contender.stop(),
    });
    const ours = lanes.find(({ name }) => name === OURS);
    return {
      verdicts: [
        verdictOf("latency added at half load, p50", addedMs(ours, "p50Ms"), MOST_P50_MS, "ms"),
        verdictOf("latency added at half load, p99", addedMs(ours, "p99Ms"), MOST_P99_MS, "ms"),
      ],
      text: [
        `Requests of 2 kB at ${figure(capacity / 2, 0)} requests/s, half of what evenkeel bears here, at random moments; ` +
          `${SECONDS} s each, direct to the origins before each peer. Medians of ${rounds} rounds, in ms.`,
        "Busy: how much of a core the peer used. Waited: how much of the time it was ready and had none, as others had them.",
        "",
        textTable([
          ["peer", "p50", "p99", "direct p50", "direct p99", "added p50", "added p99", "busy", "waited"],
          ...lanes.map((lane) => row(lane)),
        ]),
        ...failureLines(lanes),
      ].join("\n"),
      result: { requestsPerSecond: capacity / 2, peers: lanes },
      hasFailed: lanes.some(({ failure }) => failure !== undefined),
    };
  },
};

async function added(load: PacedLoad, originPort: number, contender: Contender): Promise<Added> {
  // Direct right before: what else the machine does weighs on both.
  const direct = await load.run(originPort, SECONDS);
  const before = contender.usage();
  const waitedBeforeMs = waitedMs(before);
  const through = await load.run(contender.port, SECONDS, contender.client.headers);
  const after = contender.usage();
  return {
    direct,
    through,
    busyShare: cpuMsBetween(before, after) / (1000 * SECONDS),
    waitedShare: (waitedMs(after) - waitedBeforeMs) / (1000 * SECONDS),
  };
}

function waitedMs({ processes }: TreeUsage): number {
  return sum(processes.map(({ pid }) => coreWaitMs(pid)));
}

/** Requests per second that evenkeel bears when its clients never wait. */
async function closedLoopRate(bench: Bench): Promise<number> {
  bench.progress("what evenkeel bears");
  const contender = await startWarm(bench, evenkeel);
  try {
    const { unitsPerSecond } = await contender.measure((port) => bench.requests.run(port, SECONDS));
    return unitsPerSecond;
  } finally {
    await contender.stop();
  }
}

function row({ name, samples }: Lane<Added>): string[] {
  const medianOf = (value: (sample: Added) => number): string => figure(median(samples.map(value)), 3);
  return [
    name,
    medianOf(({ through }) => through.p50Ms),
    medianOf(({ through }) => through.p99Ms),
    medianOf(({ direct }) => direct.p50Ms),
    medianOf(({ direct }) => direct.p99Ms),
    figure(addedMs({ samples }, "p50Ms"), 3),
    figure(addedMs({ samples }, "p99Ms"), 3),
    medianOf(({ busyShare }) => busyShare),
    medianOf(({ waitedShare }) => waitedShare),
  ];
}

/** Undefined: it was not measured. */
function addedMs(lane: Pick<Lane<Added>, "samples"> | undefined, share: "p50Ms" | "p99Ms"): number | undefined {
  if (lane === undefined || lane.samples.length === 0) return undefined;
  return median(lane.samples.map(({ direct, through }) => through[share] - direct[share]));
}
