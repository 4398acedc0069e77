import type { EngineAdapter } from "../adapter.ts";
import { readHealthByStatus } from "../health-reading.ts";
import { readVllmSignals } from "./vllm.ts";

/** The built-in engine (`evenkeel engine`). It reports under vLLM's names. */
export const evenkeel: EngineAdapter = {
  kind: "evenkeel",
  title: "built-in engine",
  ownedBy: ["evenkeel"],
  healthPath: "/health",
  readHealth: readHealthByStatus,
  metricsPath: "/metrics",
  metricsSwitch: undefined,
  readSignals: readVllmSignals,
  slots: undefined,
  acceptsStreamOptions: true,
};
