import { type Host, hostText } from "../support/host.ts";
import { textTable } from "../support/table.ts";
import type { Call } from "../support/text-call.ts";
import { isLost, type Promised } from "./promises.ts";
import type { ChaosRecord } from "./run.ts";

/** How requests ended, as their clients saw it. */
export interface EndCounts {
  readonly requests: number;
  readonly whole: number;
  /** Broken in the middle, and the client could tell. */
  readonly broken: number;
  /** An engine's own error, passed on. */
  readonly engineErrors: number;
  /** The balancer said: come again later. */
  readonly toldToWait: number;
  /** Nothing of an answer came. */
  readonly lost: number;
  readonly left: number;
  /** Ended well and wrong, or not at all. */
  readonly wrong: number;
}

/** A run in figures; `--json` prints exactly this. */
export interface ChaosResult {
  readonly host: Host;
  readonly engines: string;
  readonly clients: number;
  readonly minutes: number;
  readonly seed: number;
  /** How often each kind of fault struck, and what became of the requests that were under way meanwhile. */
  readonly faults: Readonly<Record<string, EndCounts & { readonly struck: number }>>;
  readonly without: EndCounts;
  readonly all: EndCounts;
  /** As the balancer counted them. */
  readonly outcomes: Readonly<Record<string, number>>;
  readonly promises: readonly Promised[];
}

/** What is known of a request in flight when a fault is mended goes on for about this long. */
const AFTERMATH_MS = 1000;

/** Counts of a record by kind of fault. */
export function countRecord({
  storm,
  struck,
  outcomes,
}: ChaosRecord): Pick<ChaosResult, "faults" | "without" | "all" | "outcomes"> {
  const { calls } = storm;
  const kinds = [...new Set(struck.map(({ fault }) => fault.kind))];
  const disturbed = new Set<Call>();
  const faults = Object.fromEntries(
    kinds.map((kind) => {
      const times = struck.filter(({ fault }) => fault.kind === kind);
      const met = calls.filter(({ sentAtMs, endedAtMs }) =>
        times.some(({ fromMs, toMs }) => sentAtMs <= toMs + AFTERMATH_MS && endedAtMs >= fromMs),
      );
      for (const call of met) disturbed.add(call);
      return [kind, { struck: times.length, ...countEnds(met) }];
    }),
  );
  const without = countEnds(calls.filter((call) => !disturbed.has(call)));
  return { faults, without, all: countEnds(calls), outcomes };
}

function countEnds(calls: readonly Call[]): EndCounts {
  const count = (is: (call: Call) => boolean): number => calls.filter(is).length;
  return {
    requests: calls.length,
    whole: count(({ ending }) => ending === "whole"),
    broken: count(({ ending }) => ending === "broken"),
    engineErrors: count(({ ending, isOwnRefusal }) => ending === "refused" && !isOwnRefusal),
    toldToWait: count((call) => call.isOwnRefusal && !isLost(call)),
    lost: count(isLost),
    left: count(({ ending }) => ending === "left"),
    wrong: count(({ ending }) => ending === "false" || ending === "hung"),
  };
}

/** Lines of cases that are shown; the JSON has all. */
const SHOWN_CASES = 12;

/** The run as text. */
export function chaosText(result: ChaosResult): string {
  const { engines, clients, minutes, seed, faults, without, all, outcomes, promises } = result;
  const outcomeText = Object.entries(outcomes).map(([name, count]) => `${name} ${count}`);
  return [
    hostText(result.host),
    `${engines}, ${clients} clients, ${minutes} minutes, seed ${seed}`,
    "",
    textTable([
      ["under way during", "struck", ...ENDS.map(([head]) => head)],
      ...Object.entries(faults).map(([kind, counts]) => [kind, String(counts.struck), ...row(counts)]),
      ["no fault", "", ...row(without)],
      ["all", "", ...row(all)],
    ]),
    "",
    `The balancer counted: ${outcomeText.join(", ")}`,
    "",
    textTable([
      ["promise", "kept", "found"],
      ...promises.map(({ name, isKept, found }) => [name, isKept ? "yes" : "NO", found]),
    ]),
    ...promises.flatMap(({ name, cases }) => (cases.length === 0 ? [] : ["", `${name}:`, ...shown(cases)])),
  ].join("\n");
}

const ENDS: readonly (readonly [string, keyof EndCounts])[] = [
  ["requests", "requests"],
  ["whole", "whole"],
  ["broken", "broken"],
  ["engine's error", "engineErrors"],
  ["told to wait", "toldToWait"],
  ["lost", "lost"],
  ["left", "left"],
  ["wrong", "wrong"],
];

function row(counts: EndCounts): string[] {
  return ENDS.map(([, name]) => String(counts[name]));
}

function shown(cases: readonly string[]): string[] {
  const rest = cases.length - SHOWN_CASES;
  return [...cases.slice(0, SHOWN_CASES), ...(rest > 0 ? [`and ${rest} more`] : [])];
}
