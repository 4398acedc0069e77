import { TrialRunner } from "./trial.ts";
import type { TrialOrder, TrialReply } from "./trial-pool.ts";

/** A process that runs trials as it is ordered to, until whoever started it is gone. */
let runner: TrialRunner | undefined;

process.on("message", (order: TrialOrder) => process.send?.(replyTo(order)));
process.on("disconnect", () => process.exit());

function replyTo({ traces, trial }: TrialOrder): TrialReply {
  try {
    runner ??= new TrialRunner(traces);
    return { kind: "done", result: runner.run(trial) };
  } catch (error) {
    return { kind: "failed", message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}
