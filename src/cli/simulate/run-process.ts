import type { RunOrder, RunReply } from "./run-pool.ts";
import { Runner } from "./runner.ts";

/** A process that runs simulations as it is ordered to, until whoever started it is gone. */
let runner: Runner | undefined;

process.on("message", (order: RunOrder) => reply(resultOf(order)));
process.on("disconnect", () => process.exit());

function resultOf({ settings, spec }: RunOrder): RunReply {
  try {
    runner ??= new Runner(settings);
    return { kind: "done", simulation: runner.run(spec, (share) => reply({ kind: "progress", share })) };
  } catch (error) {
    return { kind: "failed", message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

function reply(message: RunReply): void {
  process.send?.(message);
}
