import { CAPACITY_GOODPUT, capacitiesOf, type SweepPoint } from "../../sim/index.ts";
import { formatTable } from "../report.ts";

/** A sweep as text: a row per run, and what it says of capacity. */
export function formatSweep(points: readonly SweepPoint[]): string {
  const variable = points[0]?.variable ?? "rate";
  const unit = variable === "rate" ? "x" : "";
  const rows = points.map(({ value, summary }) => [
    summary.policy,
    String(value),
    (100 * summary.goodputRatio).toFixed(1),
    milliseconds(summary.ttftMs?.mean),
    milliseconds(summary.ttftMs?.p99),
    milliseconds(summary.e2eMs?.mean),
    (100 * summary.hitRatio).toFixed(1),
  ]);
  const heading = variable === "rate" ? "Largest rate" : "Fewest endpoints";
  const capacities = capacitiesOf(points).map(({ policy, value }) => [
    policy,
    value === undefined ? "none" : `${unit}${value}`,
  ]);
  return [
    formatTable(["policy", variable, "good %", "TTFT ms", "TTFT p99", "E2E ms", "hit %"], rows),
    `\n${heading} with ${100 * CAPACITY_GOODPUT} % goodput\n`,
    formatTable(["policy", variable], capacities),
  ].join("");
}

function milliseconds(value: number | undefined): string {
  return value === undefined ? "" : value.toFixed(0);
}
