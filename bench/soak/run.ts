import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import type { Inspector } from "../support/inspector.ts";
import { ServedBalancer } from "../support/served-balancer.ts";
import { VICTIM_MODEL, victimEngines } from "../support/victim-engines.ts";
import { type EndCounts, SteadyLoad } from "./load.ts";

/** What a soak is made of. */
export interface SoakPlan {
  readonly minutes: number;
  /** Of these, at the start, nothing counts: code is compiled, tables grow to their bounds. */
  readonly warmUpMinutes: number;
  readonly requestsPerSecond: number;
  readonly sampleMs: number;
  readonly seed: number;
  /** Folder in which the run has one of its own for its files. */
  readonly scratch: string;
  readonly progress: (text: string) => void;
}

/** The balancer at one moment. */
export interface SoakSample {
  /** From the start. */
  readonly minutes: number;
  /** With nothing under way and no connections, after a forced collection, in bytes. */
  readonly heapBytes: number;
  readonly externalBytes: number;
  readonly residentBytes: number;
  readonly sockets: number;
  /** How late its event loop was since the last sample, in ms. */
  readonly lagP99Ms: number;
  readonly lagMaxMs: number;
  /** Requests sent to it so far. */
  readonly requests: number;
}

/** What was seen. */
export interface SoakRecord {
  readonly samples: readonly SoakSample[];
  readonly endings: EndCounts;
  readonly failures: readonly string[];
}

const ENGINES = 4;
/** They are about half busy at 60 requests a second. */
const SPEED = 0.6;
const CONFIG = { timeouts: { upstreamKeepAlive: "1s" }, log: { level: "warn", format: "json" } };
/** Connections to engines that are kept are gone after this. */
const REST_MS = 1500;

/** Loads a balancer steadily, and looks at it every so often. */
export async function runSoak(plan: SoakPlan): Promise<SoakRecord> {
  const directory = await mkdtemp(join(plan.scratch, "run-"));
  const engines = await victimEngines(ENGINES, SPEED, directory);
  let balancer: ServedBalancer | undefined;
  try {
    await Promise.all(engines.map((engine) => engine.start()));
    const endpoints = engines.map(({ id, url }) => ({ id, url }));
    balancer = await ServedBalancer.start({ ...CONFIG, endpoints }, directory);
    return await soak(plan, balancer);
  } finally {
    await Promise.all(engines.map((engine) => engine.stop()));
    await balancer?.stop();
  }
}

async function soak(plan: SoakPlan, balancer: ServedBalancer): Promise<SoakRecord> {
  await balancer.inspect((inspector) => inspector.evaluate(WATCH_LAG));
  const load = new SteadyLoad({ ...plan, origin: balancer.origin, model: VICTIM_MODEL });
  const startMs = performance.now();
  const samples: SoakSample[] = [];
  const count = Math.ceil((plan.minutes * 60_000) / plan.sampleMs);
  for (let i = 1; i <= count; i++) {
    await new Promise((resolve) => setTimeout(resolve, startMs + i * plan.sampleMs - performance.now()));
    if (balancer.lastWords !== undefined) throw new Error(`the balancer ended: ${balancer.lastWords}`);
    samples.push(await sampleOf(balancer, load, startMs));
    if (i % SAMPLES_PER_LINE === 0) plan.progress(progressLine(samples.at(-1) as SoakSample));
  }
  await load.pause();
  return { samples, endings: load.endings, failures: load.failures };
}

async function sampleOf(balancer: ServedBalancer, load: SteadyLoad, startMs: number): Promise<SoakSample> {
  const [lagP99Ms = Number.NaN, lagMaxMs = Number.NaN] = await balancer.inspect(readLag);
  // What is under way, and connections, take memory that is no leak, now more and now less: far more than the leak that
  // is to be found.
  await load.pause();
  await new Promise((resolve) => setTimeout(resolve, REST_MS));
  const footprint = await balancer.footprint();
  // What the forced collection held up is not the balancer's own lateness.
  await balancer.inspect((inspector) => inspector.evaluate(RESET_LAG));
  load.resume();
  return { minutes: (performance.now() - startMs) / 60_000, ...footprint, lagP99Ms, lagMaxMs, requests: load.sent };
}

async function readLag(inspector: Inspector): Promise<readonly number[]> {
  return JSON.parse(String(await inspector.evaluate(READ_LAG))) as readonly number[];
}

/** Looks at the event loop every 10 ms; what it is late beyond that is its lag. */
const WATCH_LAG =
  "globalThis.soakLag = process.getBuiltinModule('node:perf_hooks').monitorEventLoopDelay({ resolution: 10 });" +
  "soakLag.enable()";
const READ_LAG = "JSON.stringify([soakLag.percentile(99), soakLag.max].map((ns) => ns / 1e6 - 10))";
const RESET_LAG = "soakLag.reset()";

const SAMPLES_PER_LINE = 4;

function progressLine({ minutes, heapBytes, sockets, requests }: SoakSample): string {
  const mebibytes = (heapBytes / 2 ** 20).toFixed(2);
  return `${minutes.toFixed(1)} min: ${requests} requests, heap ${mebibytes} MiB, ${sockets} sockets`;
}
