import { freePorts } from "../../support/free-port.ts";
import { Inspector } from "../../support/inspector.ts";
import { median } from "../../support/statistics.ts";
import { figure, textTable } from "../../support/table.ts";
import { Contender } from "../contender.ts";
import { messageOf } from "../forked.ts";
import { evenkeel } from "../peers/evenkeel.ts";
import type { RequestPlan } from "../request-client.ts";
import type { Bench } from "../run.ts";
import { type Measure, verdictOf } from "./measure.ts";
import type { PromptCost } from "./prompt-process.ts";

const MOST_CPU_MS = 1.5;
const MOST_STALL_MS = 10;

/** Long requests that a served evenkeel gets: 40 a second, four million tokens. */
const LOAD = { bodies: "long", connections: 4, requests: 200, gapMs: 100 } as const;
const IDLE_MS = 3000;

/** How long its event loop was held up, in milliseconds. */
interface Stalls {
  readonly p99Ms: number;
  readonly maxMs: number;
}

interface LiveRound {
  /** While nothing came: what the machine does to any process. */
  readonly idle: Stalls;
  readonly loaded: Stalls;
  /** CPU of the whole path, receiving and sending included. */
  readonly cpuMsPerRequest: number;
}

export const prompt: Measure = {
  name: "prompt",
  async run({ bench, rounds }) {
    bench.progress("long prompts: the functions");
    const costs = await messageOf<PromptCost[]>(new URL("./prompt-process.ts", import.meta.url), String(rounds));
    const live = await liveRounds(bench, rounds);
    const liveMedian = (value: (round: LiveRound) => number): number => median(live.map(value));
    return {
      verdicts: [
        ...costs.map(({ name, totalMs }) =>
          verdictOf(`400 kB prompt, ${name}: parse, hash, decide`, median(totalMs), MOST_CPU_MS, "ms CPU"),
        ),
        verdictOf(
          "longest stall under 400 kB prompts",
          liveMedian(({ loaded }) => loaded.maxMs),
          MOST_STALL_MS,
          "ms",
        ),
      ],
      text: [
        `Chat requests of 400 kB through the program's own functions: CPU in ms, medians of ${rounds} rounds; baseline: bare JSON.parse.`,
        "",
        textTable([["prompt", "all", "parse", "hash", "decide", "baseline", "all x baseline"], ...costs.map(costRow)]),
        "",
        `A served evenkeel, ${(1000 * LOAD.connections) / LOAD.gapMs} such requests/s: ` +
          `${figure(
            liveMedian(({ cpuMsPerRequest }) => cpuMsPerRequest),
            2,
          )} ms CPU each, receiving and sending included. ` +
          "How long its event loop was held up, in ms:",
        "",
        textTable([
          ["", "p99", "longest"],
          stallRow(
            "idle",
            liveMedian(({ idle }) => idle.p99Ms),
            liveMedian(({ idle }) => idle.maxMs),
          ),
          stallRow(
            "loaded",
            liveMedian(({ loaded }) => loaded.p99Ms),
            liveMedian(({ loaded }) => loaded.maxMs),
          ),
        ]),
      ].join("\n"),
      result: { functions: costs, live },
      hasFailed: false,
    };
  },
};

async function liveRounds({ origins, scratch, progress }: Bench, rounds: number): Promise<LiveRound[]> {
  const [inspectorPort = 0] = await freePorts(1);
  const contender = await Contender.start(evenkeel, origins.ports, scratch, ({ file, args }) => ({
    file,
    args: [`--inspect=127.0.0.1:${inspectorPort}`, ...args],
  }));
  try {
    const inspector = await Inspector.connect(inspectorPort);
    await inspector.evaluate(WATCH);
    await contender.measure(sendLong);
    const results: LiveRound[] = [];
    for (let round = 0; round < rounds; round++) {
      progress(`long prompts, served: round ${round + 1} of ${rounds}`);
      results.push(await liveRound(contender, inspector));
    }
    inspector.close();
    return results;
  } finally {
    await contender.stop();
  }
}

async function liveRound(contender: Contender, inspector: Inspector): Promise<LiveRound> {
  await inspector.evaluate(RESET);
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  const idle = await stalls(inspector);
  await inspector.evaluate(RESET);
  const { cpuUsPerUnit } = await contender.measure(sendLong);
  return { idle, loaded: await stalls(inspector), cpuMsPerRequest: cpuUsPerUnit / 1000 };
}

async function sendLong(port: number): Promise<{ count: number; seconds: number; problems: readonly string[] }> {
  const startMs = performance.now();
  const plan: RequestPlan = { port, ...LOAD };
  const count = await messageOf<number>(new URL("../request-client.ts", import.meta.url), JSON.stringify(plan));
  return { count, seconds: (performance.now() - startMs) / 1000, problems: [] };
}

/** A timer of 1 ms: what it is late by was a stall. */
const WATCH =
  "globalThis.benchDelay = process.getBuiltinModule('node:perf_hooks').monitorEventLoopDelay({ resolution: 1 });" +
  "benchDelay.enable()";
const RESET = "benchDelay.reset()";
const READ = "JSON.stringify({ p99Ms: benchDelay.percentile(99) / 1e6 - 1, maxMs: benchDelay.max / 1e6 - 1 })";

async function stalls(inspector: Inspector): Promise<Stalls> {
  return JSON.parse(String(await inspector.evaluate(READ))) as Stalls;
}

function costRow({ name, totalMs, parseMs, hashMs, decideMs, baselineMs }: PromptCost): string[] {
  const [total, baseline] = [median(totalMs), median(baselineMs)];
  return [
    name,
    ...[total, median(parseMs), median(hashMs), median(decideMs), baseline].map((ms) => figure(ms, 3)),
    figure(total / baseline, 2),
  ];
}

function stallRow(name: string, p99Ms: number, maxMs: number): string[] {
  return [name, figure(p99Ms, 2), figure(maxMs, 2)];
}
