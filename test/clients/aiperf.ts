/**
 * NVIDIA aiperf through `evenkeel serve` in front of two built-in engines: every request has to succeed, and the time
 * to first token is set beside the balancer's own. `npx tsx test/clients/aiperf.ts`; `--json` prints one JSON object.
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { evenkeelCommand } from "../../bench/support/install.ts";
import { runToEnd } from "../../bench/support/managed-process.ts";
import { figure, textTable } from "../../bench/support/table.ts";
import { Child, freePort } from "../engines/harness/child.ts";
import { Serve } from "../engines/harness/serve.ts";
import { installAiperf } from "../engines/setup/install-aiperf.ts";
import { type Sample, sumOf } from "../support/metric-samples.ts";

const MODEL = "keel";

/** Slow enough that a client in Python on a shared machine is no great part of what it measures. */
const ENGINE_SPEED = "0.1";

const COMMON = [
  ...["--model", MODEL, "--endpoint-type", "chat", "--streaming", "--ui", "none", "--use-server-token-count"],
  ...["--synthetic-input-tokens-mean", "400", "--output-tokens-mean", "20", "--extra-inputs", "ignore_eos:true"],
];

const SESSIONS = 6;
const TURNS = 3;

const RUNS = [
  { name: "40 requests", requests: 40, flags: ["--concurrency", "4", "--request-count", "40"] },
  {
    name: `${SESSIONS} sessions of ${TURNS} turns`,
    requests: SESSIONS * TURNS,
    flags: [
      ...["--concurrency", "3", "--conversation-num", `${SESSIONS}`, "--conversation-turn-mean", `${TURNS}`],
      ...["--conversation-turn-delay-mean", "50", "--connection-reuse-strategy", "sticky-user-sessions"],
      ...["--session-header", "X-Session-ID"],
    ],
  },
];

/** Times in milliseconds. */
interface Result {
  readonly run: string;
  readonly requests: number;
  readonly succeeded: number;
  readonly servedOk: number;
  readonly sessionKeys: number;
  readonly cachedTokens: number;
  readonly aiperfTtft: { readonly mean: number; readonly p50: number };
  readonly evenkeelTtft: { readonly mean: number; readonly p50Above: number; readonly p50UpTo: number };
}

/** The part of aiperf's summary that is read here. */
interface Summary {
  readonly time_to_first_token: { readonly avg: number; readonly p50: number };
  readonly request_count: { readonly avg: number };
}

async function main(): Promise<void> {
  const scratch = await mkdtemp(join(tmpdir(), "evenkeel-aiperf-"));
  const ports = [await freePort(), await freePort()];
  const engines = ports.map((port) => {
    const flags = ["--listen", `127.0.0.1:${port}`, "--model", MODEL, "--speed", ENGINE_SPEED];
    const { file, args } = evenkeelCommand("engine", ...flags);
    return new Child(file, args);
  });
  const urls = ports.map((port) => `http://127.0.0.1:${port}`);
  try {
    await Promise.all(engines.map((engine, i) => engine.answersAt(`${urls[i]}/health`)));
    const results: Result[] = [];
    for (const run of RUNS) results.push(await measure(run, urls, join(scratch, `${run.requests}`)));
    report(results);
  } finally {
    for (const engine of engines) await engine.kill();
    await rm(scratch, { recursive: true });
  }
}

/** One run against a balancer of its own, so that its metrics hold that run and nothing else. */
async function measure(run: (typeof RUNS)[number], urls: readonly string[], artifacts: string): Promise<Result> {
  const { program, tokenizer } = await installAiperf();
  const serve = await Serve.start(urls);
  try {
    const place = ["--url", serve.url, "--tokenizer", tokenizer, "--artifact-dir", artifacts];
    await runToEnd({ file: program, args: ["profile", ...COMMON, ...run.flags, ...place] });
    const summary = JSON.parse(await readFile(join(artifacts, "profile_export_aiperf.json"), "utf8")) as Summary;
    const samples = await serve.samples();
    return {
      run: run.name,
      requests: run.requests,
      succeeded: summary.request_count.avg,
      servedOk: sumOf(samples, "evenkeel_requests_total", { outcome: "ok" }),
      sessionKeys: sumOf(samples, "evenkeel_session_keys_total", { result: "found" }),
      cachedTokens: sumOf(samples, "evenkeel_cached_tokens_total"),
      aiperfTtft: { mean: summary.time_to_first_token.avg, p50: summary.time_to_first_token.p50 },
      evenkeelTtft: histogramFigures(samples, "evenkeel_time_to_first_token_seconds"),
    };
  } finally {
    await serve.stop();
  }
}

/** In milliseconds. Of the median a histogram knows between which two edges it lies, and no more. */
function histogramFigures(samples: readonly Sample[], name: string): Result["evenkeelTtft"] {
  const count = sumOf(samples, `${name}_count`);
  const buckets = samples.filter((sample) => sample.name === `${name}_bucket`);
  const edges = [...new Set(buckets.flatMap(({ labels }) => (labels.le === undefined ? [] : [labels.le])))];
  const holdsHalf = (le: string): boolean => sumOf(buckets, `${name}_bucket`, { le }) >= count / 2;
  const ordered = edges
    .map((le) => ({ le, edge: le === "+Inf" ? Number.POSITIVE_INFINITY : Number(le) }))
    .sort((a, b) => a.edge - b.edge);
  const at = ordered.findIndex(({ le }) => holdsHalf(le));
  return {
    mean: (1000 * sumOf(samples, `${name}_sum`)) / count,
    p50Above: 1000 * (ordered[at - 1]?.edge ?? 0),
    p50UpTo: 1000 * (ordered[at]?.edge ?? Number.POSITIVE_INFINITY),
  };
}

function report(results: readonly Result[]): void {
  if (process.argv.includes("--json")) {
    console.log(JSON.stringify({ engineSpeed: Number(ENGINE_SPEED), results }));
  } else {
    const head = ["run", "requests", "ok at aiperf", "ok at evenkeel", "with session", "cached tokens"];
    const times = ["TTFT mean aiperf", "evenkeel", "p50 aiperf", "evenkeel"];
    const rows = results.map(({ aiperfTtft, evenkeelTtft, ...result }) => [
      result.run,
      ...[result.requests, result.succeeded, result.servedOk, result.sessionKeys, result.cachedTokens].map(String),
      ...[aiperfTtft.mean, evenkeelTtft.mean, aiperfTtft.p50].map((ms) => figure(ms, 1)),
      `${figure(evenkeelTtft.p50Above, 0)}..${figure(evenkeelTtft.p50UpTo, 0)}`,
    ]);
    console.log(`NVIDIA aiperf through evenkeel, two built-in engines at speed ${ENGINE_SPEED}; times in ms\n`);
    console.log(textTable([[...head, ...times], ...rows]));
  }
  const isClean = ({ requests, succeeded, servedOk }: Result): boolean =>
    succeeded === requests && servedOk === requests;
  if (!results.every(isClean)) process.exitCode = 1;
}

await main();
