import type { EngineKind, EngineSignals } from "../core/index.ts";
import type { EngineAdapter } from "./adapter.ts";
import { hasRestarted } from "./engine-restart.ts";
import { readModels, type ServedModel } from "./models.ts";
import { noSignals } from "./no-signals.ts";
import type { ProbeAnswer, ProbeClient } from "./probe-client.ts";

/** The part of a logger that is needed; pino has it. */
export interface PollerLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** What scraping found. None of it says anything about health. */
export interface ScrapeEvents {
  /** At least one signal was found. */
  onSignals(signals: EngineSignals): void;
  /** A scrape of the metrics found nothing; the log is told once, this each time. */
  onScrapeFailed(reason: string): void;
  /** A counter ran backwards: the engine restarted unseen, its cache is empty. The new signals follow. */
  onRestart(): void;
  /** A model list was read. */
  onModels(models: readonly ServedModel[], engine: EngineKind): void;
}

/** Reads models, slots and metrics of one endpoint. */
export interface Scraper {
  readModels(adapter: EngineAdapter): Promise<boolean>;
  /** They are told with the signals, metrics or not. */
  readSlots(adapter: EngineAdapter): Promise<void>;
  readMetrics(adapter: EngineAdapter): Promise<void>;
}

export interface ScraperOptions {
  readonly client: ProbeClient;
  readonly endpointId: string;
  readonly events: ScrapeEvents;
  readonly log: PollerLog;
  nowMs(): number;
}

export function createScraper({ client, endpointId, events, log, nowMs }: ScraperOptions): Scraper {
  /** Complaints that were logged and still hold, by subject. */
  const complaints = new Map<string, string>();
  let lastSignals: EngineSignals | undefined;
  let slots: number | undefined;

  function complain(subject: string, reason: string, missingSwitch?: string): void {
    if (complaints.get(subject) === reason) return;
    complaints.set(subject, reason);
    const remedy = missingSwitch === undefined ? {} : { remedy: `start the engine with ${missingSwitch}` };
    log.warn({ endpoint: endpointId, reason, ...remedy }, `no ${subject} from the engine`);
  }

  function settle(subject: string): void {
    if (complaints.delete(subject)) log.info({ endpoint: endpointId }, `the engine gives its ${subject} again`);
  }

  return {
    async readModels(adapter) {
      const answer = await client.get("/v1/models");
      const models = isSuccess(answer) ? readModels(answer.body) : undefined;
      if (models === undefined) {
        complain("model list", isSuccess(answer) ? "not a model list" : failureOf(answer));
        return false;
      }
      settle("model list");
      events.onModels(models, adapter.kind);
      return true;
    },

    async readSlots(adapter) {
      slots = undefined;
      if (adapter.slots === undefined) return;
      const answer = await client.get(adapter.slots.path);
      if (isSuccess(answer)) slots = adapter.slots.readSlots(answer.body);
    },

    async readMetrics(adapter) {
      if (adapter.metricsPath === undefined) return;
      const answer = await client.get(adapter.metricsPath);
      const signals = isSuccess(answer) ? adapter.readSignals(answer.body, nowMs()) : undefined;
      if (signals === undefined || !saysSomething(signals)) {
        const reason = isSuccess(answer) ? "no metric of a known name" : failureOf(answer);
        complain("metrics", reason, isSwitchedOff(answer) ? adapter.metricsSwitch : undefined);
        events.onScrapeFailed(reason);
        if (slots !== undefined && lastSignals === undefined) {
          events.onSignals({ ...noSignals("", nowMs()), maxRunningRequests: slots });
        }
        return;
      }
      settle("metrics");
      if (lastSignals !== undefined && hasRestarted(lastSignals, signals)) events.onRestart();
      lastSignals = signals;
      events.onSignals(slots === undefined ? signals : { ...signals, maxRunningRequests: slots });
    },
  };
}

function isSuccess(answer: ProbeAnswer): answer is ProbeAnswer & { readonly kind: "answered" } {
  return answer.kind === "answered" && answer.status === 200;
}

/** The engine is there and its metrics are not: llama.cpp answers 501, the others 404 or an empty page. */
function isSwitchedOff(answer: ProbeAnswer): boolean {
  return answer.kind === "answered" && [200, 404, 501].includes(answer.status);
}

function failureOf(answer: ProbeAnswer): string {
  return answer.kind === "answered" ? `answered ${answer.status}` : answer.reason;
}

function saysSomething({ observedAtMs: _, ...values }: EngineSignals): boolean {
  return Object.values(values).some((value) => value !== undefined);
}
