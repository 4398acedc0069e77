import { figure, textTable } from "../../support/table.ts";
import { Contender } from "../contender.ts";
import type { Peer } from "../peer.ts";
import { PEERS } from "../peers/index.ts";
import type { Bench } from "../run.ts";
import { failureLines, type Lane, sideBySide } from "../side-by-side.ts";
import type { Verdict } from "../verdict.ts";
import { type Measure, OURS } from "./measure.ts";

/** What it is not to be above: the routers for inference in Rust. Other proxies know nothing of what they carry. */
const ROUTERS = PEERS.filter(({ isLlmRouter }) => isLlmRouter).map(({ name }) => name);
const SHOWN = [OURS, ...ROUTERS];

/** Shares of all requests after which memory is looked at. */
const SHARES = [0, 0.1, 0.5, 1];
const SLICE_SECONDS = 5;

/** A peer on its way to its last request. */
interface Runner {
  readonly contender: Contender;
  sent: number;
  seconds: number;
  readonly residentBytes: number[];
}

/** What one peer kept in memory. */
interface Curve {
  readonly requests: number;
  readonly seconds: number;
  /** At each of `SHARES`. */
  readonly residentBytes: readonly number[];
}

export const memory: Measure = {
  name: "memory",
  async run({ bench, peers: all, memoryRequests }) {
    const peers = all.filter(({ name }) => SHOWN.includes(name));
    const lanes = await sideBySide<Runner, Curve>(bench, peers, {
      // A round brings each to the next share.
      rounds: SHARES.length,
      enter: async (peer) => enter(bench, peer),
      sample: (runner, round) => goOn(bench, runner, memoryRequests * (SHARES[round] as number)),
      leave: ({ contender }) => contender.stop(),
    });
    return {
      verdicts: [verdict(lanes, memoryRequests)],
      text: [
        `Resident memory in MB on the way to ${memoryRequests} requests of 2 kB, side by side.`,
        "",
        textTable([["peer", ...SHARES.map((share) => `${100 * share} %`), "requests", "seconds"], ...lanes.map(row)]),
        ...failureLines(lanes),
      ].join("\n"),
      result: { requests: memoryRequests, shares: SHARES, peers: lanes },
      hasFailed: lanes.some(({ failure }) => failure !== undefined),
    };
  },
};

async function enter({ origins, scratch }: Bench, peer: Peer): Promise<Runner> {
  const contender = await Contender.start(peer, origins.ports, scratch);
  return { contender, sent: 0, seconds: 0, residentBytes: [] };
}

async function goOn({ requests, progress }: Bench, runner: Runner, until: number): Promise<Curve> {
  const { contender, residentBytes } = runner;
  progress(`memory: ${contender.name} to ${until} requests`);
  while (runner.sent < until) {
    const { units, unitsPerSecond } = await contender.measure((port) =>
      requests.run(port, SLICE_SECONDS, contender.client),
    );
    runner.sent += units;
    runner.seconds += units / unitsPerSecond;
  }
  residentBytes.push(contender.residentBytes());
  return { requests: runner.sent, seconds: runner.seconds, residentBytes: [...residentBytes] };
}

/** Undefined: it did not come to the end. */
function finalBytes(lane: Lane<Curve> | undefined): number | undefined {
  return lane?.failure === undefined ? lane?.samples.at(-1)?.residentBytes.at(-1) : undefined;
}

function verdict(lanes: readonly Lane<Curve>[], requests: number): Verdict {
  const ours = finalBytes(lanes.find(({ name }) => name === OURS));
  const routers = lanes.filter(({ name }) => ROUTERS.includes(name)).flatMap((lane) => finalBytes(lane) ?? []);
  // Against some of the routers nothing can be said.
  const least = routers.length < ROUTERS.length ? undefined : Math.min(...routers);
  const isKnown = ours !== undefined && least !== undefined;
  return {
    measure: `resident memory after ${requests} requests`,
    target: "at most that of the smallest Rust router",
    measured: isKnown ? `${figure(ours / 1e6, 0)} MB, ${figure(ours / least, 2)} x` : "-",
    isMet: isKnown ? ours <= least : undefined,
  };
}

function row(lane: Lane<Curve>): string[] {
  const last = lane.samples.at(-1);
  return [
    lane.name,
    ...SHARES.map((_, i) => figure((last?.residentBytes[i] ?? Number.NaN) / 1e6, 0)),
    figure(last?.requests, 0),
    figure(last?.seconds, 0),
  ];
}
