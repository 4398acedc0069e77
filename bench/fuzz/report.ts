import { type Host, hostText } from "../support/host.ts";
import { figure, textTable } from "../support/table.ts";
import type { FuzzRow } from "./target.ts";

/** A whole run; `--json` prints exactly this. */
export interface FuzzResult {
  readonly host: Host;
  readonly seed: number;
  readonly rows: readonly FuzzRow[];
}

/** The run as text. */
export function fuzzText({ host, seed, rows }: FuzzResult): string {
  return [
    hostText(host),
    `Seed ${seed}`,
    "",
    textTable([
      ["target", "inputs", "s", "per s", "borne"],
      ...rows.map(({ target, inputs, seconds, failure }) => [
        target,
        String(inputs),
        figure(seconds, 1),
        figure(inputs / seconds, 0),
        failure === undefined ? "all" : "NO",
      ]),
    ]),
    ...rows.flatMap(failureLines),
  ].join("\n");
}

function failureLines({ target, failure }: FuzzRow): string[] {
  if (failure === undefined) return [];
  const { message, input, path } = failure;
  const again = path === undefined ? [] : [`again with --targets "${target}" --path ${path}`];
  return ["", `${target}: ${message}`, ...(input === undefined ? [] : [input]), ...again];
}
