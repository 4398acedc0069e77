import type { EngineAdapter } from "../adapter.ts";
import { readHealthByMember } from "../health-reading.ts";
import { noSignals } from "../no-signals.ts";

/** Ollama. It exports no metrics: the balancer's own ledger has to do. */
export const ollama: EngineAdapter = {
  kind: "ollama",
  title: "Ollama",
  ownedBy: ["library"],
  healthPath: "/api/version",
  readHealth: (status, body) => readHealthByMember(status, body, "version"),
  metricsPath: undefined,
  metricsSwitch: undefined,
  readSignals: noSignals,
  slots: undefined,
  acceptsStreamOptions: true,
};
