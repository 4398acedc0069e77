import { join } from "node:path";
import { cpuMsBetween, type ProcessUsage, type TreeUsage } from "../../support/process-tree.ts";
import { median } from "../../support/statistics.ts";
import { figure, textTable } from "../../support/table.ts";
import { Contender } from "../contender.ts";
import { type Delivered, runStreams } from "../load.ts";
import { PacedLoad } from "../paced-load.ts";
import type { Peer } from "../peer.ts";
import { evenkeel } from "../peers/evenkeel.ts";
import { failureLines, type Lane, sideBySide } from "../side-by-side.ts";
import { WORKLOAD } from "../workload.ts";
import type { Measure } from "./measure.ts";

/** What throughput is to grow by from one worker to two, where cores are free. */
const LEAST = 1.8;

const COUNTS = [1, 2] as const;

/**
 * Load that each worker gets, however many there are: what is busier spends less on each request, since it does more
 * per system call.
 */
const REQUESTS_PER_SECOND = 2000;
const STREAMS = 150;
const PACED_SECONDS = 5;
/** Each of two workers sees half of the requests that the one does, and takes twice as long to be compiled. */
const WARM_UP_SECONDS = 12;

/** What one kind of load cost; CPU in microseconds per answer or event. */
interface Cost {
  readonly perSecond: number;
  /** Of the processes that serve, all of them together. */
  readonly serveUs: number;
  /** Of the primary; 0 where the one process is all there is. */
  readonly primaryUs: number;
  /** Part of the CPU that the busiest of those that serve used; even: 1 by their number. */
  readonly busiestShare: number;
}

/** Requests as fast as they are answered; requests and streams in proportion to the workers. */
const LOADS = ["requests, full", "requests, paced", "events, paced"] as const;
type Load = (typeof LOADS)[number];

type Sample = Readonly<Record<Load, Cost>>;

/** A gateway with so many workers. */
interface Entrant {
  readonly contender: Contender;
  readonly paced: PacedLoad;
  readonly count: number;
}

/** Throughput of one worker and of two, and what it costs. */
export const workers: Measure = {
  name: "workers",
  async run({ bench, rounds }) {
    const lanes = await sideBySide<Entrant, Sample>(bench, COUNTS.map(withWorkers), {
      rounds,
      async enter(peer) {
        const count = Number.parseInt(peer.name, 10);
        const scratch = join(bench.scratch, `workers-${count}`);
        const contender = await Contender.start(peer, bench.origins.ports, scratch);
        await contender.measure((port) => bench.requests.run(port, WARM_UP_SECONDS));
        return { contender, count, paced: await PacedLoad.create(scratch, REQUESTS_PER_SECOND * count) };
      },
      sample: async ({ contender, count, paced }) => ({
        "requests, full": await costOf(contender, (port) => bench.requests.run(port, WORKLOAD.requestSeconds)),
        "requests, paced": await costOf(contender, (port) => atItsPace(paced, port)),
        "events, paced": await costOf(contender, (port) => runStreams(port, STREAMS * count)),
      }),
      leave: ({ contender }) => contender.stop(),
    });
    const [one, two] = lanes as [Lane<Sample>, Lane<Sample>];
    const scaling = Object.fromEntries(LOADS.map((load) => [load, scalingOf(one, two, load)])) as Record<Load, number>;
    const requests = scaling["requests, paced"];
    return {
      verdicts: [
        {
          measure: "throughput of 2 workers where cores are free, by CPU per request",
          target: `at least ${LEAST} x that of 1`,
          measured: `${figure(requests, 2)} x`,
          isMet: Number.isFinite(requests) ? requests >= LEAST : undefined,
        },
      ],
      text: [
        `One process and two workers in turn, ${rounds} rounds; medians. Paced: ${REQUESTS_PER_SECOND} requests a second, or ${STREAMS} streams, for each worker.`,
        "Client and origins use the same cores, so what is served per second here says little. What a request costs says",
        "what cores that are free would serve: each worker by its own CPU, until the busiest, or the primary, is full.",
        "",
        textTable([
          ["load", "workers", "per second", "serving us", "primary us", "busiest", "bound per second", "scaling"],
          ...LOADS.flatMap((load) =>
            lanes.map(({ samples }, i) => [
              load,
              ...row(
                COUNTS[i] as number,
                samples.map((sample) => sample[load]),
              ),
              i === 0 ? "" : figure(scaling[load], 2),
            ]),
          ),
        ]),
        ...failureLines(lanes),
      ].join("\n"),
      result: { lanes, scaling },
      hasFailed: lanes.some(({ failure }) => failure !== undefined),
    };
  },
};

async function atItsPace(paced: PacedLoad, port: number): Promise<Delivered> {
  const { requestsPerSecond } = await paced.run(port, PACED_SECONDS);
  return { count: Math.round(requestsPerSecond * PACED_SECONDS), seconds: PACED_SECONDS, problems: [] };
}

function withWorkers(count: number): Peer {
  return {
    ...evenkeel,
    name: `${count} worker${count === 1 ? "" : "s"}`,
    async prepare(site) {
      const { file, args } = await evenkeel.prepare(site);
      return { file, args: [...args, "--workers", String(count)] };
    },
  };
}

async function costOf(contender: Contender, load: (port: number) => Promise<Delivered>): Promise<Cost> {
  const before = contender.usage();
  const { units, unitsPerSecond } = await contender.measure(load);
  const after = contender.usage();
  // The root comes first; where it is alone, it is the one that serves.
  const [rootMs = 0, ...othersMs] = after.processes.map((usage) => usedMs(before, usage));
  const serving = othersMs.length > 0 ? othersMs : [rootMs];
  const servingMs = serving.reduce((sum, ms) => sum + ms, 0);
  return {
    perSecond: unitsPerSecond,
    serveUs: (servingMs * 1000) / units,
    primaryUs: othersMs.length > 0 ? (rootMs * 1000) / units : 0,
    busiestShare: Math.max(...serving) / servingMs,
  };
}

function usedMs(before: TreeUsage, usage: ProcessUsage): number {
  return cpuMsBetween(treeOf(before.processes.filter(({ pid }) => pid === usage.pid)), treeOf([usage]));
}

function treeOf(processes: readonly ProcessUsage[]): TreeUsage {
  return { cpuMs: 0, residentBytes: 0, processes };
}

/** What throughput grows by when the number of workers does, by the CPU that each request takes; in pairs, a round each. */
function scalingOf(one: Lane<Sample>, two: Lane<Sample>, load: Load): number {
  const pairs = one.samples.map((sample, round) => [sample, two.samples[round]] as const);
  return median(
    pairs.map(([single, double]) =>
      double === undefined ? Number.NaN : bound(2, double[load]) / bound(1, single[load]),
    ),
  );
}

/** Answers or events per second that so many workers could give, each on a core of its own. */
function bound(workers: number, { serveUs, primaryUs, busiestShare }: Cost): number {
  const fullFirst = Math.max(serveUs * Math.max(busiestShare, 1 / workers), primaryUs);
  return 1e6 / fullFirst;
}

function row(count: number, costs: readonly Cost[]): string[] {
  const medianOf = (value: (cost: Cost) => number): number => median(costs.map(value));
  return [
    String(count),
    figure(
      medianOf(({ perSecond }) => perSecond),
      0,
    ),
    figure(
      medianOf(({ serveUs }) => serveUs),
      1,
    ),
    figure(
      medianOf(({ primaryUs }) => primaryUs),
      1,
    ),
    figure(
      medianOf(({ busiestShare }) => busiestShare),
      2,
    ),
    figure(
      medianOf((cost) => bound(count, cost)),
      0,
    ),
  ];
}
