import type { EngineKind, ProbeOutcome } from "../core/index.ts";
import type { EngineAdapter, HealthReading } from "./adapter.ts";
import { detectEngine } from "./detect.ts";
import { engineAdapters } from "./engines/index.ts";
import { readHealthByStatus } from "./health-reading.ts";
import type { ProbeAnswer, ProbeClient } from "./probe-client.ts";

/** Probes one endpoint for health and remembers which engine it runs. */
export interface Prober {
  /** Undefined: not found out yet. */
  readonly adapter: EngineAdapter | undefined;
  probe(): Promise<ProbeOutcome>;
}

export interface ProberOptions {
  readonly client: ProbeClient;
  /** `auto`: found out at the first probe that is answered, and again after one that failed. */
  readonly engine: EngineKind | "auto";
  /** Probed in place of the engine's own path and read by its status alone; undefined: the engine's own. */
  readonly path: string | undefined;
  /** Whether the client carries a key; only the wording depends on it. */
  readonly hasApiKey: boolean;
  nowMs(): number;
}

type ReadHealth = EngineAdapter["readHealth"];

export function createProber({ client, engine, path, hasApiKey, nowMs }: ProberOptions): Prober {
  const configured = engine === "auto" ? undefined : engineAdapters[engine];
  let adapter = configured;

  async function probe(): Promise<ProbeOutcome> {
    const startedAtMs = nowMs();
    const { answer, read } = await ask();
    if (answer.kind === "timed_out") return { ...answer, startedAtMs };
    const reading = answer.kind === "failed" ? answer : read(answer.status, answer.body);
    // Another engine may stand at this address when it answers again.
    if (reading.kind === "failed") adapter = configured;
    return reading.kind === "auth_failed" ? { ...reading, reason: `${reading.reason}, ${keyState}` } : reading;
  }

  const keyState = hasApiKey ? "the configured API key is refused" : "no API key is configured";

  async function ask(): Promise<{ readonly answer: ProbeAnswer; readonly read: ReadHealth }> {
    if (adapter === undefined) {
      const detection = await detectEngine(client.get);
      if (detection.kind === "detected") adapter = engineAdapters[detection.engine];
      else if (path === undefined) return { answer: detection.models, read: readUndecided };
    }
    if (path !== undefined || adapter === undefined)
      return { answer: await client.get(path ?? "/"), read: readHealthByStatus };
    return { answer: await client.get(adapter.healthPath), read: adapter.readHealth };
  }

  return {
    get adapter() {
      return adapter;
    },
    probe,
  };
}

/** A good answer that fits no engine is no sign of health. */
function readUndecided(status: number, body: string): HealthReading {
  const reading = readHealthByStatus(status, body);
  if (reading.kind !== "ok") return reading;
  return { kind: "failed", reason: "answers, but not as an engine does: set its kind" };
}
