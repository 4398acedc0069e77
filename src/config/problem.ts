/** One thing that is wrong with a configuration. */
export interface Problem {
  /** Which setting: `pools[0].endpoints[1].weight`; empty: the configuration as a whole. */
  readonly path: string;
  /** Where it was written: `evenkeel.yaml:12:7`, `--listen` or `EVENKEEL_LISTEN`; undefined: nowhere, it is missing. */
  readonly source: string | undefined;
  /** What was there, in words or quoted; secrets and interpolated values are not shown. */
  readonly found: string;
  /** What should be there. */
  readonly expected: string;
}

/** One line, starting with the place so that terminals and editors link it. */
export function formatProblem(problem: Problem): string {
  const place = problem.source === undefined ? "" : `${problem.source}: `;
  const subject = problem.path === "" ? "" : `${problem.path} is `;
  return `${place}${subject}${problem.found}, expected ${problem.expected}`;
}

/** What came of reading a configuration: the value, or everything that is wrong with it. */
export type Checked<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly problems: readonly Problem[] };
