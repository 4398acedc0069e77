import { BLOCK_TOKENS } from "../engine-profiles.ts";
import { type TraceLine, type TraceSource, traceLines } from "./trace-text.ts";
import type { Arrival, Workload } from "./workload.ts";
import { shown, WorkloadError } from "./workload-error.ts";

/** First line of Azure's LLM inference traces. */
export const AZURE_HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens";

const ROW = /^(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d(?:\.\d+)?)(?:\+00:00)?,(\d+),(\d+)$/;

/** Reads Azure's LLM inference traces of 2023 and 2024: times and sizes, no identity. Time 0 is the first request. */
export function readAzure(source: TraceSource, { name }: { readonly name: string }): Workload {
  const [header, ...rows] = traceLines(source);
  if (header?.text.replace(/^\uFEFF/, "") !== AZURE_HEADER) {
    throw new WorkloadError(`line 1: expected the columns ${AZURE_HEADER}, got ${shown(header?.text ?? "")}`);
  }
  const firstDay = rows[0] === undefined ? 0 : readRow(rows[0]).day;
  const sent = rows.map((line) => arrivalOf(line, firstDay)).sort((a, b) => a.atMs - b.atMs);
  const startMs = sent[0]?.atMs ?? 0;
  const arrivals = sent.map(({ atMs, request }) => ({ atMs: atMs - startMs, request }));
  return { name, blockTokens: BLOCK_TOKENS, arrivals };
}

/** Counted from the first row's day: from 1970, a double would not tell the seventh decimal of a second. */
function arrivalOf(line: TraceLine, firstDay: number): Arrival {
  const { day, seconds, promptTokens, outputTokens } = readRow(line);
  return {
    atMs: ((day - firstDay) * SECONDS_PER_DAY + seconds) * 1000,
    request: {
      promptTokens,
      outputTokens,
      blockIds: [],
      sessionKey: undefined,
      tenant: undefined,
      next: undefined,
    },
  };
}

function readRow({ number, text }: TraceLine) {
  const [year = 0, month = 0, day = 0, hours = 0, minutes = 0, seconds = 0, promptTokens = 0, outputTokens = 0] =
    ROW.exec(text)?.slice(1).map(Number) ?? [];
  // No match leaves month 0.
  if (month < 1 || month > 12 || day < 1 || day > 31 || hours > 23 || minutes > 59 || seconds >= 60) {
    throw new WorkloadError(`line ${number}: expected YYYY-MM-DD hh:mm:ss.fffffff,TOKENS,TOKENS, got ${shown(text)}`);
  }
  return {
    day: dayNumber(year, month, day),
    seconds: (hours * 60 + minutes) * 60 + seconds,
    promptTokens,
    outputTokens,
  };
}

const SECONDS_PER_DAY = 86_400;

/** Days of the Gregorian calendar from a fixed one. Years are taken from March on, which puts the leap day last. */
function dayNumber(year: number, month: number, day: number): number {
  const marchYear = month > 2 ? year : year - 1;
  const leapDays = Math.floor(marchYear / 4) - Math.floor(marchYear / 100) + Math.floor(marchYear / 400);
  // From March on, months alternate 31 and 30 days in runs of five: 153 days each.
  const daysBefore = Math.floor((153 * ((month + 9) % 12) + 2) / 5);
  return 365 * marchYear + leapDays + daysBefore + day;
}
