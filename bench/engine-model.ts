/**
 * CPU time of the engine model alone: requests go round robin to engines that run in virtual time, and each engine is
 * asked now and then how far its requests are, as the simulator does for its balancer. Run with
 * `npx tsx bench/engine-model.ts [--trace FILE]`; `--json` prints one JSON object instead of the table.
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { seededRandom } from "../src/core/index.ts";
import { EngineModel, type EngineProfile, type EngineRequest, engineProfile, type Workload } from "../src/sim/index.ts";
import { ROOT } from "./support/install.ts";
import { readTrace } from "./support/read-trace.ts";

const { values } = parseArgs({
  options: {
    trace: { type: "string", default: join(ROOT, "..", "shared", "traces", "azure-2023-conv.csv") },
    json: { type: "boolean", default: false },
  },
});

/** About 32 decode steps. */
const PROGRESS_EVERY_MS = 500;

interface Request extends EngineRequest {
  readonly atMs: number;
  seenTokens: number;
}

interface Load {
  readonly name: string;
  readonly profile: string;
  readonly engines: number;
  readonly blockTokens: number;
  readonly requests: readonly Request[];
}

interface Row {
  readonly load: string;
  readonly requests: number;
  readonly requestsPerSecond: number;
  readonly usPerRequest: number;
  readonly meanInFlight: number;
  readonly preemptions: number;
  readonly hitRatio: number;
}

/** Drives the engines as a simulator does: whatever happens next, happens. */
class Fleet {
  readonly #engines: readonly EngineModel<Request>[];
  readonly #progressAtMs: number[];
  inFlightMs = 0;

  constructor({ engines, profile, blockTokens }: Load) {
    const options = { profile: engineProfile(profile) as EngineProfile, blockTokens };
    this.#progressAtMs = Array.from({ length: engines }, () => 0);
    this.#engines = Array.from(
      { length: engines },
      () => new EngineModel<Request>(options, { finished: this.#finished }),
    );
  }

  readonly #finished = (request: Request, atMs: number): void => {
    this.inFlightMs += atMs - request.atMs;
  };

  run(requests: readonly Request[]): number {
    let arrived = 0;
    let nowMs = 0;
    for (;;) {
      const request = requests[arrived];
      const next = this.#next();
      const engineMs = this.#engines[next]?.nextEventMs() ?? Number.POSITIVE_INFINITY;
      if (request !== undefined && request.atMs <= engineMs) {
        nowMs = request.atMs;
        this.#engines[arrived++ % this.#engines.length]?.submit(request, nowMs);
      } else if (engineMs < Number.POSITIVE_INFINITY) {
        nowMs = engineMs;
        this.#advance(next, nowMs);
      } else return nowMs;
    }
  }

  #next(): number {
    let next = 0;
    let nextMs = Number.POSITIVE_INFINITY;
    for (let i = 0; i < this.#engines.length; i++) {
      const atMs = (this.#engines[i] as EngineModel<Request>).nextEventMs() ?? Number.POSITIVE_INFINITY;
      if (atMs < nextMs) {
        nextMs = atMs;
        next = i;
      }
    }
    return next;
  }

  #advance(index: number, nowMs: number): void {
    const engine = this.#engines[index] as EngineModel<Request>;
    engine.advance(nowMs);
    if (nowMs < (this.#progressAtMs[index] as number)) return;
    this.#progressAtMs[index] = nowMs + PROGRESS_EVERY_MS;
    engine.forEachRunning(nowMs, (request, generatedTokens) => {
      request.seenTokens = generatedTokens;
    });
  }

  total(read: "preemptionsTotal" | "prefixHitTokensTotal" | "prefixQueryTokensTotal", nowMs: number): number {
    return this.#engines.reduce((sum, engine) => sum + (engine.signals(nowMs)[read] ?? 0), 0);
  }
}

function measure(load: Load): Row {
  let bestMs = Number.POSITIVE_INFINITY;
  let fleet = new Fleet(load);
  let endMs = 0;
  for (let round = 0; round < 3; round++) {
    fleet = new Fleet(load);
    const before = process.cpuUsage();
    endMs = fleet.run(load.requests);
    const { user, system } = process.cpuUsage(before);
    bestMs = Math.min(bestMs, (user + system) / 1000);
  }
  const { length } = load.requests;
  return {
    load: load.name,
    requests: length,
    requestsPerSecond: Math.round((1000 * length) / bestMs),
    usPerRequest: Number(((1000 * bestMs) / length).toPrecision(3)),
    meanInFlight: Number((fleet.inFlightMs / endMs / load.engines).toPrecision(3)),
    preemptions: fleet.total("preemptionsTotal", endMs),
    hitRatio: Number(
      (fleet.total("prefixHitTokensTotal", endMs) / fleet.total("prefixQueryTokensTotal", endMs)).toFixed(3),
    ),
  };
}

function azure({ arrivals }: Workload, speedup: number): Load {
  const requests = arrivals.map(({ atMs, request: { promptTokens, outputTokens } }) => ({
    atMs: atMs / speedup,
    promptTokens,
    outputTokens,
    blockHashes: [],
    seenTokens: 0,
  }));
  return { name: `azure x${speedup}`, profile: "llama8b-h100", engines: 8, blockTokens: 16, requests };
}

/** Long answers: the lengths are exponential, as those of a reasoning model nearly are. */
function reasoning(ratePerSecond: number): Load {
  const random = seededRandom(1);
  const exponential = (mean: number): number => -mean * Math.log(1 - random.next());
  let atMs = 0;
  const requests = Array.from({ length: 40_000 }, () => {
    atMs += exponential(1000 / ratePerSecond);
    return {
      atMs,
      promptTokens: Math.ceil(exponential(1260)),
      outputTokens: Math.min(16_000, Math.ceil(exponential(1500))),
      blockHashes: [],
      seenTokens: 0,
    };
  });
  return {
    name: `reasoning ${ratePerSecond}/s`,
    profile: "llama70b-tp4-h100",
    engines: 16,
    blockTokens: 16,
    requests,
  };
}

/** Long prompts of conversations that grow: each turn repeats what came before it. */
function longPrompts(blockTokens: number): Load {
  const random = seededRandom(2);
  const turns = 8;
  const requests: Request[] = [];
  for (let conversation = 0; conversation < 500; conversation++) {
    let promptTokens = 12_000 + Math.floor(random.next() * 8_000);
    let atMs = conversation * 10_000 * random.next();
    for (let turn = 0; turn < turns; turn++) {
      const blocks = Math.ceil((promptTokens + 300) / blockTokens);
      const blockHashes = Array.from({ length: blocks }, (_, depth) => conversation * 100_000 + depth);
      requests.push({ atMs, promptTokens, outputTokens: 300, blockHashes, seenTokens: 0 });
      promptTokens = Math.min(150_000, Math.ceil(promptTokens * (1.1 + random.next() * 0.6)));
      atMs += 20_000 + random.next() * 20_000;
    }
  }
  requests.sort((a, b) => a.atMs - b.atMs);
  return { name: `long, blocks of ${blockTokens}`, profile: "llama8b-h200", engines: 8, blockTokens, requests };
}

const trace = await readTrace(values.trace, Number.POSITIVE_INFINITY);
const loads = [
  ...[1, 10, 20, 40].map((speedup) => azure(trace, speedup)),
  ...[10, 25, 40].map((rate) => reasoning(rate)),
  ...[64, 512].map(longPrompts),
];
const rows = loads.map(measure);
if (values.json) console.log(JSON.stringify({ bench: "engine-model", rows }));
else console.table(rows);
