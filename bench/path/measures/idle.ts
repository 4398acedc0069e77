import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { median } from "../../support/statistics.ts";
import { figure, textTable } from "../../support/table.ts";
import { Contender } from "../contender.ts";
import { Origins } from "../origins.ts";
import type { Peer } from "../peer.ts";
import { failureLines, type Lane, sideBySide } from "../side-by-side.ts";
import { type Measure, OURS, verdictOf } from "./measure.ts";

const MOST_KB = 25;

const STREAMS = 10_000;
/** Few enough streams at each that none has to wait for another, whatever a policy thinks of their work. */
const ORIGINS = 40;
/** Code is compiled and pools are set up by so many; they are closed before anything is looked at. */
const FIRST_STREAMS = 100;
/** Other descriptors of a process, those of the first streams included: some notice late that a client has left. */
const SPARE_DESCRIPTORS = 400;
/** Memory does not vary as times do, and a round takes half a minute for each peer. */
const MOST_ROUNDS = 3;
const SETTLE_MS = 2000;
/** Some keep connections to origins for a while. */
const CLOSE_SETTLE_MS = 8000;

/** Resident memory of one fresh process, in bytes. */
interface Residence {
  readonly before: number;
  readonly open: number;
  /** After all were closed. */
  readonly closed: number;
  /** With as many open as the first time; undefined: it could not, as when it still holds the closed ones. */
  readonly openAgain: number | undefined;
}

export const idle: Measure = {
  name: "idle",
  async run({ bench, peers, rounds: wished }) {
    const rounds = Math.min(wished, MOST_ROUNDS);
    const streams = Math.min(STREAMS, Math.floor((descriptorLimit() - SPARE_DESCRIPTORS) / 2));
    const origins = await Origins.start({ count: ORIGINS, isSilent: true });
    const lanes = await sideBySide<Peer, Residence>(bench, peers, {
      rounds,
      enter: async (peer) => peer,
      async sample(peer) {
        bench.progress(`idle streams: ${peer.name}`);
        const contender = await Contender.start(peer, origins.ports, bench.scratch);
        return residence(contender, streams).finally(() => contender.stop());
      },
      leave: async () => {},
    }).finally(() => origins.stop());
    const ours = lanes.find(({ name }) => name === OURS);
    return {
      verdicts: [
        verdictOf(`${streams} idle streams`, ours && kilobytesEach(ours, streams, firstTime), MOST_KB, "kB each"),
        verdictOf("the same opened again", ours && kilobytesEach(ours, streams, secondTime), MOST_KB, "kB each"),
      ],
      text: [
        `${streams} streams with their first event and then silence, through one process to ${ORIGINS} origins, requests of 2 kB` +
          `${streams < STREAMS ? `; ${STREAMS} would need more open files than the ${descriptorLimit()} that are allowed here` : ""}. ` +
          `Resident memory before, with them, after they were closed, and with as many again, each time over that before; medians of ${rounds} fresh processes.`,
        "",
        textTable([
          ["peer", "before MB", "open MB", "kB each", "closed MB", "open again MB", "kB each"],
          ...lanes.map((lane) => row(lane, streams)),
        ]),
        ...failureLines(lanes),
      ].join("\n"),
      result: { streams, peers: lanes },
      hasFailed: lanes.some(({ failure }) => failure !== undefined),
    };
  },
};

async function residence(contender: Contender, streams: number): Promise<Residence> {
  await close(await open(contender, FIRST_STREAMS));
  await settle();
  const before = contender.residentBytes();
  const first = await open(contender, streams);
  await settle();
  const opened = contender.residentBytes();
  await close(first);
  await settle(CLOSE_SETTLE_MS);
  const closed = contender.residentBytes();
  const second = await open(contender, streams).catch(() => undefined);
  if (second === undefined) return { before, open: opened, closed, openAgain: undefined };
  await settle();
  const openAgain = contender.residentBytes();
  await close(second);
  return { before, open: opened, closed, openAgain };
}

/** @throws when not all came to their first event. */
async function open({ port, client: { headers } }: Contender, streams: number): Promise<ChildProcess> {
  const args = [String(port), String(streams), JSON.stringify(headers)];
  const client = fork(new URL("./idle-client.ts", import.meta.url), args, {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  let words = "";
  client.stderr?.on("data", (data: Buffer) => {
    words += data;
  });
  const ended = once(client, "exit").then(() => {
    throw new Error(/Error: .*/.exec(words)?.[0] ?? "the client of the idle streams ended");
  });
  const [count] = await Promise.race([once(client, "message"), ended]);
  ended.catch(() => {});
  if (count !== streams) throw new Error(`only ${count} of ${streams} streams stayed open`);
  return client;
}

async function close(client: ChildProcess): Promise<void> {
  client.disconnect();
  await once(client, "exit");
}

function settle(ms: number = SETTLE_MS): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Open files that a process is allowed; programs that need more than their soft limit raise it to this. */
function descriptorLimit(): number {
  const [, hard = ""] = /Max open files +\S+ +(\S+)/.exec(readFileSync("/proc/self/limits", "latin1")) ?? [];
  return hard === "unlimited" ? Number.POSITIVE_INFINITY : Number(hard);
}

const firstTime = ({ before, open }: Residence): number => open - before;
/** Over what there was at first: memory of the closed ones that is kept and not used again counts against it. */
const secondTime = ({ before, openAgain = Number.NaN }: Residence): number => openAgain - before;

/** Undefined: it was not measured. */
function kilobytesEach(
  { samples }: Pick<Lane<Residence>, "samples">,
  streams: number,
  grown: (residence: Residence) => number,
): number | undefined {
  return samples.length === 0 ? undefined : median(samples.map(grown)) / streams / 1000;
}

function row(lane: Lane<Residence>, streams: number): string[] {
  const megabytes = (value: (residence: Residence) => number): string =>
    figure(median(lane.samples.map(value)) / 1e6, 0);
  return [
    lane.name,
    megabytes(({ before }) => before),
    megabytes(({ open }) => open),
    figure(kilobytesEach(lane, streams, firstTime), 1),
    megabytes(({ closed }) => closed),
    megabytes(({ openAgain }) => openAgain ?? Number.NaN),
    figure(kilobytesEach(lane, streams, secondTime), 1),
  ];
}
