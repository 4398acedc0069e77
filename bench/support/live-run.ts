import type { Workload } from "../../src/sim/index.ts";
import { CompletionClient } from "./completion-client.ts";
import { type CpuUse, CpuWatch } from "./cpu-watch.ts";
import { LiveFleet, type LiveFleetPlan } from "./live-fleet.ts";
import { sendWorkload, type Traffic } from "./send-workload.ts";
import { WorkloadPrompts } from "./workload-prompts.ts";

/** A workload, and what it is sent through. */
export interface LivePlan extends LiveFleetPlan {
  readonly workload: Workload;
  /** Of the prompts. */
  readonly seed: number;
}

/** What came of it. */
export interface LiveRun extends Traffic {
  /** Requests that engines threw out of a running batch for lack of KV. */
  readonly preemptions: number;
  readonly cpu: CpuUse;
}

/**
 * Sends workloads through `evenkeel serve` to built-in engines, each plan with fresh processes of its own, all plans at
 * the same time, once the processes of all are ready.
 */
export async function runLive(plans: readonly LivePlan[]): Promise<LiveRun[]> {
  const ready: { readonly plan: LivePlan; readonly fleet: LiveFleet }[] = [];
  try {
    for (const plan of plans) ready.push({ plan, fleet: await LiveFleet.start(plan) });
    return await Promise.all(ready.map(({ plan, fleet }) => runOne(plan, fleet)));
  } finally {
    await Promise.all(ready.map(({ fleet }) => fleet.stop()));
  }
}

async function runOne({ workload, seed, speedup }: LivePlan, fleet: LiveFleet): Promise<LiveRun> {
  const client = new CompletionClient(fleet.origin, fleet.model);
  const prompts = new WorkloadPrompts(workload.blockTokens, seed);
  const watch = new CpuWatch(fleet.processes);
  try {
    const traffic = await sendWorkload({ workload, client, prompts, speedup });
    fleet.assertRunning();
    return { ...traffic, preemptions: await fleet.preemptions(), cpu: watch.stop() };
  } finally {
    watch.stop();
    await client.close();
  }
}
