import { AZURE_HEADER, readAzure } from "./azure.ts";
import { type MooncakeOptions, readMooncake } from "./mooncake.ts";
import { type RecordingOptions, readRecording } from "./recording.ts";
import { readServeGen, type ServeGenOptions } from "./servegen.ts";
import type { TraceSource } from "./trace-text.ts";
import { readWeka, type WekaOptions } from "./weka.ts";
import type { Workload } from "./workload.ts";
import { shown, WorkloadError } from "./workload-error.ts";

/** Options of all formats. One that the format at hand does not know is an error. */
export type ReadWorkloadOptions = MooncakeOptions & WekaOptions & ServeGenOptions & RecordingOptions;

/** A format of traces. */
export type TraceFormat = "azure" | "mooncake" | "weka" | "servegen" | "recording";

interface Reader {
  readonly options: readonly Exclude<keyof ReadWorkloadOptions, "name">[];
  read(source: TraceSource, options: ReadWorkloadOptions): Workload;
}

const READERS: Readonly<Record<TraceFormat, Reader>> = {
  azure: { options: [], read: readAzure },
  mooncake: { options: ["seed"], read: readMooncake },
  weka: { options: ["sessions", "sessionGapMs", "seed", "blockTokens", "maxPromptTokens"], read: readWeka },
  servegen: { options: ["startS", "durationS", "seed"], read: readServeGen },
  recording: { options: ["model"], read: readRecording },
};

/** Keys of a line of JSON that tell its format. */
const MARKS: readonly (readonly [format: TraceFormat, ...keys: string[]])[] = [
  ["recording", "evenkeel"],
  ["mooncake", "timestamp", "input_length", "hash_ids"],
  ["weka", "block_size", "requests"],
  ["servegen", "client", "trace", "dataset"],
];

/**
 * Reads a trace of any format that docs/traces.md names; its first line tells which.
 * @throws WorkloadError that says what is wrong and in which line.
 */
export function readWorkload(source: TraceSource, options: ReadWorkloadOptions): Workload {
  const [firstLine, whole] = peekedLine(source);
  const format = formatOf(firstLine);
  const reader = READERS[format];
  const unknown = Object.entries(options).find(
    ([key, value]) => value !== undefined && key !== "name" && !(reader.options as readonly string[]).includes(key),
  );
  if (unknown !== undefined) {
    const known =
      reader.options.length === 0 ? "which has no options" : `whose options are ${reader.options.join(", ")}`;
    throw new WorkloadError(`${unknown[0]} means nothing for a trace of the format ${format}, ${known}`);
  }
  const workload = reader.read(whole, options);
  if (workload.arrivals.length === 0) throw new WorkloadError("no requests in what was asked for");
  return workload;
}

/** The format that a trace's first line shows. */
export function formatOf(firstLine: string): TraceFormat {
  if (firstLine.trim().replace(/^\uFEFF/, "") === AZURE_HEADER) return "azure";
  const keys = keysOf(firstLine);
  const found = MARKS.find(([, ...marks]) => marks.every((mark) => keys.includes(mark)));
  if (found !== undefined) return found[0];
  const known = MARKS.map(([format, ...marks]) => `${format} (a JSON object with ${marks.join(", ")})`);
  throw new WorkloadError(
    `line 1: expected the first line of azure (${AZURE_HEADER}), ${known.join(", ")}, got ${shown(firstLine)}`,
  );
}

function keysOf(line: string): string[] {
  try {
    return Object.keys(JSON.parse(line) ?? {});
  } catch {
    return [];
  }
}

/** The first line that is not blank, and a source that still has it. */
function peekedLine(source: TraceSource): [line: string, whole: TraceSource] {
  if (typeof source === "string") return [/^\s*(.*)/.exec(source)?.[1] ?? "", source];
  const lines = source[Symbol.iterator]();
  const head: string[] = [];
  for (let next = lines.next(); !next.done; next = lines.next()) {
    head.push(next.value);
    if (next.value.trim() !== "") break;
  }
  return [head.at(-1) ?? "", chained(head, lines)];
}

function* chained(head: readonly string[], rest: Iterator<string>): Generator<string> {
  yield* head;
  for (let next = rest.next(); !next.done; next = rest.next()) yield next.value;
}
