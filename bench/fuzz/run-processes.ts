import { spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import type { FuzzResult } from "./report.ts";
import type { FuzzRow } from "./target.ts";

/** Lines of its error output that show why a process ended. */
const SHOWN_LINES = 20;

/**
 * Runs each target in a process of its own, as many at a time as there are cores: what crashes or hangs one is its
 * result, and no other's.
 * @param args Of this program, besides the target.
 */
export async function runInProcesses(
  targets: readonly string[],
  program: string,
  args: readonly string[],
): Promise<FuzzRow[]> {
  const rows: FuzzRow[] = [];
  const queue = [...targets.entries()];
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [index, target] = next;
      rows[index] = await runInProcess(target, program, args);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  return rows;
}

async function runInProcess(target: string, program: string, args: readonly string[]): Promise<FuzzRow> {
  const startMs = performance.now();
  const child = spawn(process.execPath, [...process.execArgv, program, ...args, "--targets", target, "--json"]);
  const output: Buffer[] = [];
  const errors: Buffer[] = [];
  child.stdout.on("data", (part: Buffer) => output.push(part));
  child.stderr.on("data", (part: Buffer) => errors.push(part));
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  const row = rowIn(Buffer.concat(output).toString());
  if (row !== undefined) return row;
  const told = Buffer.concat(errors).toString().trim().split("\n").slice(-SHOWN_LINES).join("\n");
  const message = `its process ended with ${signal ?? `code ${code}`}: ${told}`;
  const failure = { message, input: undefined, path: undefined };
  return { target, inputs: 0, seconds: (performance.now() - startMs) / 1000, failure };
}

function rowIn(output: string): FuzzRow | undefined {
  try {
    return (JSON.parse(output) as FuzzResult).rows[0];
  } catch {
    return undefined;
  }
}
