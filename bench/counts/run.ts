import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../path/forked.ts";
import { runStreams } from "../path/load.ts";
import type { DecisionCost } from "../path/measures/decision-process.ts";
import { Origins } from "../path/origins.ts";
import type { RequestPlan } from "../path/request-client.ts";
import { WORKLOAD } from "../path/workload.ts";
import { ServedBalancer } from "../support/served-balancer.ts";
import { median } from "../support/statistics.ts";
import { allocatedBytes } from "./allocation.ts";
import type { Counts } from "./compare.ts";
import { systemCalls } from "./system-calls.ts";

/** Enough for compilers to settle, and for what happens beside the requests to weigh little. */
const REQUESTS = 10_000;
const CONNECTIONS = 32;
/** strace slows each of them down; over one connection they come one by one, so that no two share a call. */
const TRACED_REQUESTS = 1_000;
const STREAMS = 100;
/** One for each millisecond between two events: no two events share a call. */
const TRACED_STREAMS = WORKLOAD.eventGapMs;
const DECISION_ROUNDS = 5;

/** Counts what a served evenkeel does per request and per event. @param strace Undefined: there is none here. */
export async function countAll(scratch: string, strace: string | undefined): Promise<Counts> {
  const origins = await Origins.start();
  const config = {
    endpoints: origins.ports.map((port) => `http://127.0.0.1:${port}`),
    log: { level: "warn", format: "json" },
  };
  const balancer = await ServedBalancer.start(config, scratch);
  const port = Number(new URL(balancer.origin).port);
  const requests = (count: number, connections: number) => () => send({ port, connections, requests: count });
  const streams = (count: number) => () => readStreams(port, count);
  const many = requests(REQUESTS, CONNECTIONS);
  const traced = (work: () => Promise<unknown>) => systemCalls(balancer.pid, strace, join(scratch, "strace"), work);
  try {
    await many();
    await streams(STREAMS)();
    const requestBytes = await allocated(balancer, scratch, many);
    const eventBytes = await allocated(balancer, scratch, streams(STREAMS));
    const requestCalls = await traced(requests(TRACED_REQUESTS, 1));
    const eventCalls = await traced(streams(TRACED_STREAMS));
    const tracedEvents = TRACED_STREAMS * WORKLOAD.eventsPerStream;
    return {
      "bytes allocated per request": requestBytes / REQUESTS,
      "bytes allocated per event": eventBytes / (STREAMS * WORKLOAD.eventsPerStream),
      "reads and writes per request": requestCalls.readsAndWrites / TRACED_REQUESTS,
      "reads and writes per event": eventCalls.readsAndWrites / tracedEvents,
      "system calls per request": requestCalls.all && requestCalls.all / TRACED_REQUESTS,
      "system calls per event": eventCalls.all && eventCalls.all / tracedEvents,
      ...(await decisions()),
    };
  } finally {
    await balancer.stop();
    origins.stop();
  }
}

async function send(plan: Pick<RequestPlan, "port" | "connections" | "requests">): Promise<void> {
  const whole: RequestPlan = { bodies: "small", gapMs: 0, ...plan };
  await messageOf<number>(new URL("../path/request-client.ts", import.meta.url), JSON.stringify(whole));
}

async function readStreams(port: number, streams: number): Promise<void> {
  const { problems } = await runStreams(port, streams);
  if (problems.length > 0) throw new Error(problems.join(", "));
}

/** Bytes that the balancer allocates on its heap during `work`. */
async function allocated(balancer: ServedBalancer, directory: string, work: () => Promise<void>): Promise<number> {
  // A collection at both ends: nothing of before or after counts, and nothing of the work is left out.
  const collect = () => balancer.inspect((inspector) => inspector.memory());
  await balancer.inspect((inspector) => inspector.evaluate(TRACE_COLLECTIONS));
  await collect();
  const before = (await readLog(directory)).length;
  await work();
  await collect();
  return allocatedBytes((await readLog(directory)).slice(before));
}

const TRACE_COLLECTIONS = "process.getBuiltinModule('node:v8').setFlagsFromString('--trace-gc-nvp')";

function readLog(directory: string): Promise<string> {
  return readFile(join(directory, "balancer.log"), "utf8");
}

/** What a decision costs, counted in bare looks for the least of so many numbers. */
async function decisions(): Promise<Counts> {
  const program = new URL("../path/measures/decision-process.ts", import.meta.url);
  const costs = await messageOf<DecisionCost[]>(program, String(DECISION_ROUNDS));
  return Object.fromEntries(
    costs.map(({ endpoints, busyUs, baselineUs }) => [
      `decision of ${endpoints} endpoints, in baseline loops`,
      median(busyUs) / median(baselineUs),
    ]),
  );
}
