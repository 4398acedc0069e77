import { mkdir } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { freePorts } from "../../support/free-port.ts";
import { ManagedProcess } from "../../support/managed-process.ts";
import { median } from "../../support/statistics.ts";
import { figure, textTable } from "../../support/table.ts";
import type { Peer } from "../peer.ts";
import type { Bench } from "../run.ts";
import { failureLines, type Lane, sideBySide } from "../side-by-side.ts";
import { PATH, requestBody } from "../workload.ts";
import { type Measure, OURS, verdictOf } from "./measure.ts";

const MOST_SECONDS = 0.5;
const TIMEOUT_MS = 60_000;
/** Between two looks. */
const LOOK_MS = 3;

/** Where a peer's admin listener says that it is ready, if it has such a page. */
const READY_PATHS: Readonly<Record<string, string>> = { evenkeel: "/readyz", envoy: "/ready" };

/** From the start of the process, in seconds. */
interface StartTimes {
  /** Until its page of readiness said so first; undefined: it has none. */
  readonly readySeconds: number | undefined;
  /** Until the first chat request was answered. */
  readonly servedSeconds: number;
}

/** What no program on Node can be faster than: a listener that answers by itself. */
const bareNode: Peer = {
  name: "bare Node",
  settings: "an HTTP server of one line that answers by itself",
  install: async () => process.versions.node,
  prepare: async ({ port }) => ({
    file: process.execPath,
    args: ["-e", `require("node:http").createServer((q, a) => a.end("{}")).listen(${port}, "127.0.0.1")`],
  }),
};

export const start: Measure = {
  name: "start",
  async run({ bench, peers, rounds }) {
    const lanes = await sideBySide<Peer, StartTimes>(bench, [bareNode, ...peers], {
      rounds,
      enter: async (peer) => peer,
      sample: (peer) => startTimes(bench, peer),
      leave: async () => {},
    });
    const ours = lanes.find(({ name }) => name === OURS);
    return {
      verdicts: [
        verdictOf("start to the first 200 of the readiness page", ours && readySeconds(ours), MOST_SECONDS, "s"),
        verdictOf("start to the first served request", ours && servedSeconds(ours), MOST_SECONDS, "s"),
      ],
      text: [
        `From the start of the process, asked every ${LOOK_MS} ms; medians of ${rounds} starts, in seconds.`,
        "",
        textTable([["peer", "ready", "first served", "x bare Node"], ...lanes.map((lane) => row(lane, lanes[0]))]),
        ...failureLines(lanes),
      ].join("\n"),
      result: { peers: lanes },
      hasFailed: lanes.some(({ failure }) => failure !== undefined),
    };
  },
};

async function startTimes({ origins, scratch }: Bench, peer: Peer): Promise<StartTimes> {
  const [port = 0, adminPort = 0] = await freePorts(2);
  const directory = join(scratch, `start-${peer.name.replaceAll(" ", "-")}`);
  await mkdir(directory, { recursive: true });
  const site = { port, adminPort, originPorts: origins.ports, directory };
  const headers = peer.headers?.(site) ?? {};
  const command = await peer.prepare(site);
  const readyPath = READY_PATHS[peer.name];
  const startMs = performance.now();
  const process = new ManagedProcess(peer.name.replaceAll(" ", "-"), command, directory);
  try {
    const [readySeconds, servedSeconds] = await Promise.all([
      readyPath === undefined ? undefined : firstSuccess(process, startMs, () => succeeds(adminPort, "GET", readyPath)),
      firstSuccess(process, startMs, () => succeeds(port, "POST", PATH, headers)),
    ]);
    return { readySeconds, servedSeconds };
  } finally {
    await process.stop();
  }
}

/** Seconds from `startMs` until a request is answered with 200. @throws when the process ends, or time is up. */
async function firstSuccess(
  process: ManagedProcess,
  startMs: number,
  isServed: () => Promise<boolean>,
): Promise<number> {
  for (;;) {
    if (await isServed()) return (performance.now() - startMs) / 1000;
    process.assertRunning();
    if (performance.now() > startMs + TIMEOUT_MS) throw new Error(`no answer within ${TIMEOUT_MS / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

function succeeds(
  port: number,
  method: "GET" | "POST",
  path: string,
  own: Readonly<Record<string, string>> = {},
): Promise<boolean> {
  return new Promise((resolve) => {
    const headers = { "content-type": "application/json", connection: "close", ...own };
    const sent = request({ host: "127.0.0.1", port, method, path, headers, agent: false }, (answer) => {
      answer.resume().on("end", () => resolve(answer.statusCode === 200));
    });
    sent.on("error", () => resolve(false));
    sent.setTimeout(TIMEOUT_MS, () => sent.destroy());
    sent.end(method === "POST" ? requestBody(false) : undefined);
  });
}

const servedSeconds = ({ samples }: Lane<StartTimes>): number => median(samples.map((sample) => sample.servedSeconds));

const readySeconds = ({ samples }: Lane<StartTimes>): number =>
  median(samples.map((sample) => sample.readySeconds ?? Number.NaN));

function row(lane: Lane<StartTimes>, bare: Lane<StartTimes> | undefined): string[] {
  const served = servedSeconds(lane);
  return [lane.name, figure(readySeconds(lane), 3), figure(served, 3), figure(bare && served / servedSeconds(bare), 1)];
}
