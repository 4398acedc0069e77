import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { CELLS, keyOf } from "./routing/cells.ts";
import { isAllMet, routingText } from "./routing/report.ts";
import { runRouting } from "./routing/run.ts";
import { TrialPool } from "./routing/trial-pool.ts";

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      traces: { type: "string", default: "../shared/traces" },
      seeds: { type: "string", default: "3" },
      cells: { type: "string", default: "" },
      jobs: { type: "string", default: `${availableParallelism()}` },
      json: { type: "boolean", default: false },
      quick: { type: "boolean", default: false },
    },
  });
  const pattern = new RegExp(values.cells);
  const cells = CELLS.filter((cell) => pattern.test(keyOf(cell)));
  if (cells.length === 0) {
    throw new Error(`--cells ${values.cells}: matches none of these:\n${CELLS.map(keyOf).join("\n")}`);
  }
  if (!existsSync(values.traces)) {
    throw new Error(`--traces ${values.traces}: no such folder; docs/traces.md says where the traces are published`);
  }
  const pool = new TrialPool(values.traces, count("--jobs", values.jobs));
  try {
    const result = await runRouting({
      cells,
      seeds: values.quick ? 1 : count("--seeds", values.seeds),
      isQuick: values.quick,
      run: (trial) => pool.run(trial),
      progress: (text) => void process.stderr.write(`${text}\n`),
    });
    process.stdout.write(`${values.json ? JSON.stringify(result) : routingText(result)}\n`);
    if (!isAllMet(result)) process.exitCode = 1;
  } finally {
    pool.close();
  }
}

function count(flag: string, text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`${flag} ${text}: expected a count`);
  return value;
}

try {
  await main();
} catch (error) {
  process.stderr.write(`error: ${(error as Error).message}\n`);
  process.exitCode = 1;
}
