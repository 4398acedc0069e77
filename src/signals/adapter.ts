import type { EngineKind, EngineSignals } from "../core/index.ts";

/** What an engine's answer to the health request means. A time-out never gets this far. */
export type HealthReading =
  | { readonly kind: "ok" }
  | { readonly kind: "loading"; readonly reason: string }
  | { readonly kind: "auth_failed"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string };

/** A page that tells an engine's slots. */
export interface SlotsSource {
  readonly path: string;
  /** Undefined: it does not say. */
  readSlots(body: string): number | undefined;
}

/** Everything that differs from engine to engine, as facts and pure functions. The poller does the I/O. */
export interface EngineAdapter {
  readonly kind: EngineKind;
  /** The engine by the name its users know. */
  readonly title: string;
  /** What the engine writes as `owned_by` into its model list; empty: nothing that tells it apart. */
  readonly ownedBy: readonly string[];
  /** Path of a cheap GET that shows whether the engine serves; it starts no generation. */
  readonly healthPath: string;
  readHealth(status: number, body: string): HealthReading;
  /** Path of the Prometheus text; undefined: the engine has none. */
  readonly metricsPath: string | undefined;
  /** What to switch on at the engine for metrics; undefined: on by default, or there are none. */
  readonly metricsSwitch: string | undefined;
  /** Never throws: what cannot be read is undefined. */
  readSignals(text: string, observedAtMs: number): EngineSignals;
  /** What tells how many requests it runs at a time; undefined: nothing does, or that is not fixed. */
  readonly slots: SlotsSource | undefined;
  /** Whether `stream_options.include_usage` may be added to a streamed request; unknown: nobody can say beforehand. */
  readonly acceptsStreamOptions: boolean | "unknown";
}
