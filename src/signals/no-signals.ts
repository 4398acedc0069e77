import { type EngineSignals, unknownSignals } from "../core/index.ts";

/** What an engine without metrics reports. */
export function noSignals(_text: string, observedAtMs: number): EngineSignals {
  return unknownSignals(observedAtMs);
}
