import { median } from "../../support/statistics.ts";
import { figure, textTable } from "../../support/table.ts";
import { messageOf } from "../forked.ts";
import type { DecisionCost } from "./decision-process.ts";
import { type Measure, verdictOf } from "./measure.ts";

/** Microseconds that a decision may take at most, by the size of the pool. */
const MOST_US: ReadonlyMap<number, number> = new Map([
  [8, 3],
  [100, 10],
  [1000, 100],
]);

export const decision: Measure = {
  name: "decision",
  async run({ bench, rounds }) {
    bench.progress("decisions");
    const costs = await messageOf<DecisionCost[]>(new URL("./decision-process.ts", import.meta.url), String(rounds));
    return {
      verdicts: costs.map(({ endpoints, busyUs }) =>
        verdictOf(`decision, ${endpoints} endpoints`, median(busyUs), MOST_US.get(endpoints) ?? Number.NaN, "us"),
      ),
      text: [
        "CPU per decision and its end, default policy, prompts of 1 kB, medians; baseline: the least of so many numbers.",
        "",
        textTable([
          ["endpoints", "us, 8 in flight each", "us, none in flight", "baseline us", "x baseline"],
          ...costs.map(row),
        ]),
      ].join("\n"),
      result: costs,
      hasFailed: false,
    };
  },
};

function row({ endpoints, busyUs, idleUs, baselineUs }: DecisionCost): string[] {
  const [busy, idle, baseline] = [median(busyUs), median(idleUs), median(baselineUs)];
  return [String(endpoints), figure(busy, 2), figure(idle, 2), figure(baseline, 3), figure(busy / baseline, 0)];
}
