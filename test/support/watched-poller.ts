import { afterEach } from "vitest";
import { type EngineSignals, type ProbeOutcome, seededRandom } from "../../src/core/index.ts";
import {
  createPoller,
  type PolledEndpoint,
  type Poller,
  type PollingOptions,
  type ServedModel,
} from "../../src/signals/index.ts";
import { answer, type Script, type ScriptedServer, startScriptedServer } from "./scripted-server.ts";
import { until } from "./until.ts";

export const MODELS: Script = answer(200, { data: [{ id: "m", owned_by: "vllm", max_model_len: 2048 }] });
export const METRICS: Script = answer(200, "vllm:num_requests_running 3\nvllm:prompt_tokens_total 100\n");
/** A vLLM that is well. */
export const VLLM: Readonly<Record<string, Script>> = {
  "/health": answer(200),
  "/v1/models": MODELS,
  "/metrics": METRICS,
};

/** A poller that runs, and everything it has called back with. */
export interface Watched {
  readonly poller: Poller;
  readonly outcomes: ProbeOutcome[];
  readonly signals: EngineSignals[];
  readonly scrapeFailures: string[];
  readonly models: { readonly models: readonly ServedModel[]; readonly engine: string }[];
  readonly log: { readonly level: string; readonly fields: object; readonly message: string }[];
  restarts: number;
}

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

/** A scripted server that is closed after the test. */
export async function serve(scripts: Readonly<Record<string, Script>>): Promise<ScriptedServer> {
  const server = await startScriptedServer(scripts);
  cleanups.push(server.close);
  return server;
}

/** Starts a poller that is stopped after the test; by default fast, for a vLLM, with a time limit that is not met. */
export function watch(
  endpoint: Partial<PolledEndpoint> & { url: string },
  health: Partial<PollingOptions> = {},
  nowMs = () => performance.now(),
): Watched {
  const seen: Omit<Watched, "poller"> = {
    outcomes: [],
    signals: [],
    scrapeFailures: [],
    models: [],
    log: [],
    restarts: 0,
  };
  const poller = createPoller({
    endpoint: { id: "gpu-0", engine: "vllm", apiKey: undefined, tls: undefined, ...endpoint },
    health: { intervalMs: 10, timeoutMs: 5_000, path: undefined, ...health },
    nowMs,
    random: seededRandom(1),
    onProbe: (outcome) => seen.outcomes.push(outcome),
    onSignals: (signals) => seen.signals.push(signals),
    onScrapeFailed: (reason) => seen.scrapeFailures.push(reason),
    onRestart: () => {
      seen.restarts += 1;
    },
    onModels: (models, engine) => seen.models.push({ models, engine }),
    log: {
      info: (fields, message) => seen.log.push({ level: "info", fields, message }),
      warn: (fields, message) => seen.log.push({ level: "warn", fields, message }),
    },
  });
  cleanups.unshift(() => poller.stop());
  poller.start();
  return Object.assign(seen, { poller });
}

/** What the first probe of a server with these scripts finds. */
export async function firstOutcome(
  scripts: Readonly<Record<string, Script>>,
  endpoint: Partial<PolledEndpoint> = {},
  health: Partial<PollingOptions> = {},
): Promise<ProbeOutcome | undefined> {
  const server = await serve(scripts);
  const { outcomes } = watch({ ...endpoint, url: server.url }, health);
  await until(() => outcomes.length > 0);
  return outcomes[0];
}
