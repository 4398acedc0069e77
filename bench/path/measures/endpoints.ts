import { join } from "node:path";
import { median } from "../../support/statistics.ts";
import { figure, textTable } from "../../support/table.ts";
import type { Contender } from "../contender.ts";
import { Origins } from "../origins.ts";
import type { Peer } from "../peer.ts";
import { failureLines, type Lane, sideBySide } from "../side-by-side.ts";
import { WORKLOAD } from "../workload.ts";
import { type Measure, OURS, verdictOf } from "./measure.ts";
import { startWarm } from "./warm.ts";

const FEW = 8;
const MANY = 200;
/** The most that requests may cost with many, as a multiple of what they cost with few. */
const MOST = 1.1;

const IDLE_SECONDS = 6;

/** One peer twice: with few and with many endpoints. */
interface Pair {
  readonly few: Contender;
  readonly many: Contender;
}

/** What one round saw; CPU in microseconds per request. */
interface Growth {
  readonly fewUs: number;
  readonly manyUs: number;
  /** CPU with many endpoints and no requests, in ms per second: probes, mostly. */
  readonly idleMsPerSecond: number;
}

export const endpoints: Measure = {
  name: "endpoints",
  async run({ bench, peers, rounds }) {
    const origins = await Origins.start({ count: MANY });
    const begin = (peer: Peer, count: number): Promise<Contender> =>
      startWarm(bench, peer, {
        originPorts: origins.ports.slice(0, count),
        scratch: join(bench.scratch, `of-${count}`),
      });
    const requestUs = async (contender: Contender): Promise<number> => {
      const { client } = contender;
      const load = (port: number) => bench.requests.run(port, WORKLOAD.requestSeconds, client);
      return (await contender.measure(load)).cpuUsPerUnit;
    };
    const lanes = await sideBySide<Pair, Growth>(bench, peers, {
      rounds,
      async enter(peer) {
        const few = await begin(peer, FEW);
        try {
          return { few, many: await begin(peer, MANY) };
        } catch (error) {
          await few.stop();
          throw error;
        }
      },
      async sample({ few, many }, round) {
        const idle = await many.measure(rest);
        // Each goes first in turn.
        const order = round % 2 === 0 ? [few, many] : [many, few];
        const us = new Map<Contender, number>();
        for (const contender of order) us.set(contender, await requestUs(contender));
        return {
          fewUs: us.get(few) ?? Number.NaN,
          manyUs: us.get(many) ?? Number.NaN,
          idleMsPerSecond: idle.cpuUsPerUnit / 1000,
        };
      },
      leave: async ({ few, many }) => {
        await Promise.all([few.stop(), many.stop()]);
      },
    }).finally(() => origins.stop());
    const ours = lanes.find(({ name }) => name === OURS);
    return {
      verdicts: [verdictOf(`CPU per request, ${MANY} endpoints`, ours && ratio(ours), MOST, `x that with ${FEW}`)],
      text: [
        `CPU per request with ${FEW} and with ${MANY} endpoints, all of them up; ratios of ${rounds} rounds, each with both; medians. ` +
          `Idle: CPU with ${MANY} endpoints and no requests.`,
        "",
        textTable([["peer", `us, ${FEW} endpoints`, `us, ${MANY} endpoints`, "ratio", "idle ms/s"], ...lanes.map(row)]),
        ...failureLines(lanes),
      ].join("\n"),
      result: { peers: lanes },
      hasFailed: lanes.some(({ failure }) => failure !== undefined),
    };
  },
};

/** Nothing, counted in seconds. */
async function rest(): Promise<{ count: number; seconds: number; problems: string[] }> {
  await new Promise((resolve) => setTimeout(resolve, IDLE_SECONDS * 1000));
  return { count: IDLE_SECONDS, seconds: IDLE_SECONDS, problems: [] };
}

/** NaN: it was not measured. */
function ratio({ samples }: Lane<Growth>): number {
  return median(samples.map(({ fewUs, manyUs }) => manyUs / fewUs));
}

function row(lane: Lane<Growth>): string[] {
  const medianOf = (value: (growth: Growth) => number): number => median(lane.samples.map(value));
  return [
    lane.name,
    figure(
      medianOf(({ fewUs }) => fewUs),
      1,
    ),
    figure(
      medianOf(({ manyUs }) => manyUs),
      1,
    ),
    figure(ratio(lane), 2),
    figure(
      medianOf(({ idleMsPerSecond }) => idleMsPerSecond),
      1,
    ),
  ];
}
