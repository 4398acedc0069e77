import type { Config } from "../config/index.ts";
import { differing } from "./same-value.ts";

/** What became of another configuration: all of it is in force, or nothing of it. */
export type ReconfigureReport =
  | { readonly kind: "applied"; readonly changed: readonly string[] }
  | { readonly kind: "unchanged" }
  /** Nothing was applied, whatever else is different. */
  | { readonly kind: "needs_restart"; readonly settings: readonly string[] };

/** When a setting is taken on: by a running process, or only by one that starts. */
const TAKEN_ON: Readonly<Record<keyof Config, "live" | "start">> = {
  listen: "start",
  admin: "start",
  workers: "start",
  recording: "start",
  log: "start",
  tls: "live",
  adminKeys: "live",
  keys: "live",
  tenantKey: "live",
  sessionKey: "live",
  pools: "live",
  passthrough: "live",
  limits: "live",
  timeouts: "live",
  health: "live",
  failover: "live",
  hedging: "live",
  streams: "live",
};

/** What it takes to go from one configuration to the other. */
export function compareConfigs(before: Config, after: Config): ReconfigureReport {
  const changed = differing(Object.keys(TAKEN_ON) as (keyof Config)[], before, after);
  const settings = [...changed.filter((name) => TAKEN_ON[name] === "start"), ...fixedParts(before, after)];
  if (settings.length > 0) return { kind: "needs_restart", settings };
  return changed.length === 0 ? { kind: "unchanged" } : { kind: "applied", changed };
}

/** Of sections that are live otherwise. A certificate may be renewed; TLS itself comes and goes by a restart. */
function fixedParts(before: Config, after: Config): readonly string[] {
  const parts = differing(["headerBytes"], before.limits, after.limits).map((name) => `limits.${name}`);
  return (before.tls === undefined) === (after.tls === undefined) ? parts : [...parts, "tls"];
}
