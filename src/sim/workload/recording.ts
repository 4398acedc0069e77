import { recordedRequestSchema, recordingHeaderSchema } from "../../core/index.ts";
import { jsonOf, type TraceLine, type TraceSource, traceLines } from "./trace-text.ts";
import type { Arrival, Workload } from "./workload.ts";
import { WorkloadError } from "./workload-error.ts";

/** Which requests to take from a recording. */
export interface RecordingOptions {
  readonly name: string;
  /** Only requests that asked for this model; default: all, as if for one. */
  readonly model?: string | undefined;
}

/**
 * Reads a recording of evenkeel's own (docs/traces.md). Its lines may come in any order: a recorder writes a
 * request when it knows how long the answer was.
 */
export function readRecording(source: TraceSource, { name, model }: RecordingOptions): Workload {
  const lines = traceLines(source);
  const header: TraceLine = lines.next().value ?? { number: 1, text: "" };
  const { blockTokens } = parsed(recordingHeaderSchema, header);
  const arrivals: Arrival[] = [];
  for (const line of lines) {
    const recorded = parsed(recordedRequestSchema, line);
    if (model !== undefined && recorded.model !== model) continue;
    arrivals.push({
      atMs: recorded.at,
      request: {
        promptTokens: recorded.in,
        outputTokens: recorded.out,
        blockIds: recorded.blocks ?? [],
        sessionKey: recorded.session,
        tenant: recorded.tenant,
        next: undefined,
      },
    });
  }
  arrivals.sort((a, b) => a.atMs - b.atMs);
  return { name, blockTokens, arrivals };
}

function parsed<T>(schema: Schema<T>, line: TraceLine): T {
  const result = schema.safeParse(jsonOf(line));
  if (result.success) return result.data;
  const problems = result.error.issues.map(({ path, message }) => [...path.map(String), message].join(": "));
  throw new WorkloadError(`line ${line.number}: ${problems.join("; ")}`);
}

/** What is needed of a zod schema. */
interface Schema<T> {
  safeParse(
    value: unknown,
  ): { success: true; data: T } | { success: false; error: { issues: { path: PropertyKey[]; message: string }[] } };
}
