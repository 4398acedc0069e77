import { textTable } from "../support/table.ts";

/** A target, what was measured, and whether the one meets the other. All texts are for people. */
export interface Verdict {
  /** What is measured, such as "CPU per request". */
  readonly measure: string;
  /** What it should be, such as "at most 3 x nginx". */
  readonly target: string;
  /** The figure, such as "2.4 x"; a dash where there is none. */
  readonly measured: string;
  /** Undefined: something that it needs was not measured. */
  readonly isMet: boolean | undefined;
}

/** The verdicts as a table, one line each. */
export function verdictText(verdicts: readonly Verdict[]): string {
  return textTable([
    ["target", "measured", "verdict"],
    ...verdicts.map(({ measure, target, measured, isMet }) => [`${measure}: ${target}`, measured, verdictWord(isMet)]),
  ]);
}

function verdictWord(isMet: boolean | undefined): string {
  if (isMet === undefined) return "not measured";
  return isMet ? "met" : "missed";
}
