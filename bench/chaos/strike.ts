import type { VictimEngine } from "../support/victim-engines.ts";
import type { PlannedFault } from "./faults.ts";

/** A fault that happened; times are those of `performance.now()`. */
export interface Struck {
  readonly fault: PlannedFault;
  readonly engine: string;
  readonly fromMs: number;
  /** When the engine was well again. */
  readonly toMs: number;
}

/** The fleet as faults find it. */
export interface Strikable {
  readonly engines: readonly VictimEngine[];
  /** Writes the balancer's file anew without this endpoint, or with weight 0, or as it was, and tells it. */
  change(endpoint: string, state: "absent" | "drained" | "present"): Promise<void>;
}

/** Carries the faults out, each at its time or when the one before in its lane is mended. Resolves when all are. */
export async function strikeAll(faults: readonly PlannedFault[], fleet: Strikable): Promise<Struck[]> {
  const startMs = performance.now();
  const struck: Struck[] = [];
  const lanes = [...new Set(faults.map(({ lane }) => lane))];
  const strikeLane = async (lane: number): Promise<void> => {
    for (const fault of faults.filter((each) => each.lane === lane)) {
      await sleep(startMs + fault.atMs - performance.now());
      const engine = fleet.engines[fault.engine] as VictimEngine;
      const fromMs = performance.now();
      await strike(fault, engine, fleet);
      struck.push({ fault, engine: engine.id, fromMs, toMs: performance.now() });
    }
  };
  await Promise.all(lanes.map(strikeLane));
  return struck;
}

async function strike(
  { kind, durationMs, specs }: PlannedFault,
  engine: VictimEngine,
  fleet: Strikable,
): Promise<void> {
  switch (kind) {
    case "kill":
      engine.kill();
      await sleep(durationMs);
      return engine.start();
    case "restart":
      engine.terminate();
      await sleep(durationMs);
      return engine.start();
    case "short freeze":
    case "long freeze":
      engine.freeze();
      await sleep(durationMs);
      return engine.thaw();
    case "remove":
    case "drain":
      await fleet.change(engine.id, kind === "remove" ? "absent" : "drained");
      await sleep(durationMs);
      return fleet.change(engine.id, "present");
    default:
      await engine.script?.(specs);
      await sleep(durationMs);
      await engine.script?.([]);
  }
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
}
