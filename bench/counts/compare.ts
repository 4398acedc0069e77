import { figure, textTable } from "../support/table.ts";

/** Counts by what they count; undefined: it could not be counted here. */
export type Counts = Readonly<Record<string, number | undefined>>;

/** The counts beside those of the baseline, and what changed. */
export function comparison(counts: Counts, baseline: Counts): string {
  return textTable([
    ["count", "baseline", "now", "change"],
    ...Object.entries(counts).map(([name, now]) => {
      const before = baseline[name];
      return [name, short(before), short(now), change(before, now)];
    }),
  ]);
}

/** Three figures are what repeats. */
export function rounded(value: number): number {
  return Number(value.toPrecision(3));
}

function short(value: number | undefined): string {
  return value === undefined ? "-" : String(rounded(value));
}

function change(before: number | undefined, now: number | undefined): string {
  if (before === undefined || now === undefined) return "-";
  const percent = 100 * (now / before - 1);
  return `${percent > 0 ? "+" : ""}${figure(percent, 1)} %`;
}
