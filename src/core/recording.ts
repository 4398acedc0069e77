import { z } from "zod";

/** The first line of a recording. */
export interface RecordingHeader {
  readonly evenkeel: "recording";
  readonly version: 1;
  /** Prompt tokens that one entry of `blocks` stands for, the same for all requests of the file. */
  readonly blockTokens: number;
  /** When it began, in ms of the Unix epoch: a recorder that comes back goes on from there. Absent: not recorded live. */
  readonly startedAt?: number | undefined;
}

/** One request of a recording. It holds sizes and hashes, never text. */
export interface RecordedRequest {
  /** Arrival, in ms from the start of the recording. */
  readonly at: number;
  /** Prompt tokens. */
  readonly in: number;
  /** Generated tokens; 0: the request generates none (embeddings). */
  readonly out: number;
  /** The prompt's chain of block hashes, shallow to deep, full blocks only. Absent: not known, shares nothing. */
  readonly blocks?: readonly number[] | undefined;
  /** Hashed by the recorder. Absent: the client gave no usable key. */
  readonly session?: string | undefined;
  /** Who sent it. Absent: not known. */
  readonly tenant?: string | undefined;
  /** The model asked for. Absent: there is only one. */
  readonly model?: string | undefined;
}

/** Checks a recording's first line. */
export const recordingHeaderSchema: z.ZodType<RecordingHeader> = z.strictObject({
  evenkeel: z.literal("recording"),
  version: z.literal(1),
  blockTokens: z.int().positive(),
  startedAt: z.number().nonnegative().optional(),
});

/** Checks every other line of a recording. */
export const recordedRequestSchema: z.ZodType<RecordedRequest> = z.strictObject({
  at: z.number().nonnegative(),
  in: z.int().positive(),
  out: z.int().nonnegative(),
  blocks: z.array(z.int().nonnegative()).optional(),
  session: z.string().min(1).optional(),
  tenant: z.string().min(1).optional(),
  model: z.string().min(1).optional(),
});

/** A recording's first line, without its line break. */
export function recordingHeaderLine(blockTokens: number, startedAt?: number): string {
  return JSON.stringify({ evenkeel: "recording", version: 1, blockTokens, startedAt } satisfies RecordingHeader);
}

/** The line of one request, without its line break. What is undefined is left out. */
export function recordedRequestLine(request: RecordedRequest): string {
  const { at, in: promptTokens, out, blocks, session, tenant, model } = request;
  // The clock of a recorder counts finer than is worth writing down.
  const atMs = Math.round(at * 1000) / 1000;
  return JSON.stringify({ at: atMs, in: promptTokens, out, blocks, session, tenant, model });
}
