import type { EngineAdapter, HealthReading } from "../adapter.ts";
import { readHealthByStatus } from "../health-reading.ts";
import { readModels } from "../models.ts";
import { noSignals } from "../no-signals.ts";

/** Any other server of the OpenAI routes: it is well when it lists its models, and reports nothing else. */
export const openai: EngineAdapter = {
  kind: "openai",
  title: "OpenAI-compatible server",
  ownedBy: [],
  healthPath: "/v1/models",
  readHealth,
  metricsPath: undefined,
  metricsSwitch: undefined,
  readSignals: noSignals,
  slots: undefined,
  acceptsStreamOptions: "unknown",
};

function readHealth(status: number, body: string): HealthReading {
  const reading = readHealthByStatus(status, body);
  if (reading.kind !== "ok" || readModels(body) !== undefined) return reading;
  return { kind: "failed", reason: `answered ${status} without a model list` };
}
