import { formatProblem, type Problem } from "../config/index.ts";
import type { Terminal } from "./terminal.ts";

/** Exit codes: done; the configuration or the start failed; the command line was not understood. */
export const EXIT = { ok: 0, failed: 1, usage: 2 } as const;

/** Prints everything that is wrong with a configuration, a line each. */
export function reportProblems(problems: readonly Problem[], terminal: Terminal): void {
  const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  terminal.writeError(`error: ${count} in the configuration\n`);
  for (const problem of problems) terminal.writeError(`  ${formatProblem(problem)}\n`);
}

/** Columns as wide as their widest cell, two spaces apart; numbers stand to the right. */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const isNumeric = head.map((_, column) => rows.every((row) => NUMERIC.test(row[column] ?? "")));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) =>
        isNumeric[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join("  ")
      .trimEnd();
  return [head, ...rows].map((cells) => `${line(cells)}\n`).join("");
}

const NUMERIC = /^-?[\d.]*$/;
