import { createHmac, randomBytes } from "node:crypto";
import { closeSync, createWriteStream, fstatSync, ftruncateSync, openSync, readSync, type WriteStream } from "node:fs";
import type { RecordingConfig } from "../config/index.ts";
import {
  type RecordingHeader,
  type RequestProfile,
  recordedRequestLine,
  recordingHeaderLine,
  recordingHeaderSchema,
} from "../core/index.ts";
import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";

/** The file cannot be recorded to; the message says why. */
export class RecordingError extends Error {}

/** What an answer turned out to hold, as far as it was counted. */
export interface AnswerSizes {
  readonly promptTokens: number | undefined;
  readonly outputTokens: number | undefined;
}

/** A request as far as it is recorded. */
export type RecordedProfile = Pick<RequestProfile, "promptTokens" | "prefix" | "sessionKey" | "model">;

/** Takes down requests that are over. */
export interface RequestRecorder {
  /** One whose output was not counted could not be replayed, and is left out. */
  record(request: RecordedProfile, arrivedAtMs: number, sizes: AnswerSizes): void;
  /** Resolves when what was recorded is where it belongs. May be called twice. */
  close(): Promise<void>;
}

/**
 * Appends the sizes of requests to a file that `evenkeel simulate` reads: no text, and session keys as hashes that hold
 * within one run. Never in the way of a request: what the disk does not take in time is left out.
 */
export class Recorder implements RequestRecorder {
  readonly #log: Log;
  readonly #file: string;
  readonly #maxBytes: number;
  readonly #stream: WriteStream;
  readonly #sessionSalt = randomBytes(32);
  /** Added to the clock's time: time since the recording began, in this run or an earlier one. */
  readonly #offsetMs: number;
  #bytes: number;
  /** Undefined: it goes on. */
  #endedBy: "size" | "error" | "close" | undefined;
  #dropped = 0;

  /** @throws RecordingError when the file cannot be written to or holds something else. */
  constructor({ file, maxBytes }: RecordingConfig, clock: Clock, log: Log) {
    this.#log = log;
    this.#file = file;
    this.#maxBytes = maxBytes;
    const nowMs = Date.now();
    const { fd, bytes, startedAtMs } = open(file);
    this.#bytes = bytes;
    this.#offsetMs = nowMs - (startedAtMs ?? nowMs) - clock.nowMs();
    this.#stream = createWriteStream(file, { fd });
    this.#stream.on("error", (error) => this.#end("error", { err: error }));
    if (startedAtMs === undefined) this.#write(recordingHeaderLine(BLOCK_TOKENS, nowMs));
  }

  record(request: RecordedProfile, arrivedAtMs: number, { promptTokens, outputTokens }: AnswerSizes): void {
    if (this.#endedBy !== undefined || !isCount(outputTokens)) return;
    if (this.#stream.writableLength > MAX_WAITING_BYTES) {
      this.#drop();
      return;
    }
    const inTokens = isCount(promptTokens) ? promptTokens : Math.max(1, request.promptTokens);
    const blocks = request.prefix?.hashes.slice(0, Math.floor(inTokens / BLOCK_TOKENS));
    this.#write(
      recordedRequestLine({
        // A wall clock that was set back between two runs must not put requests before the start.
        at: Math.max(0, arrivedAtMs + this.#offsetMs),
        in: inTokens,
        out: outputTokens,
        blocks: blocks?.length ? blocks : undefined,
        session: request.sessionKey === undefined ? undefined : this.#hash(request.sessionKey),
        model: request.model || undefined,
      }),
    );
  }

  async close(): Promise<void> {
    this.#endedBy ??= "close";
    if (this.#stream.closed) return;
    await new Promise<void>((resolve) => {
      this.#stream.once("close", () => resolve());
      this.#stream.end();
    });
  }

  #write(line: string): void {
    const text = `${line}\n`;
    const bytes = Buffer.byteLength(text);
    if (this.#bytes + bytes > this.#maxBytes) {
      this.#end("size", { maxBytes: this.#maxBytes });
      return;
    }
    this.#bytes += bytes;
    this.#stream.write(text);
  }

  #end(reason: "size" | "error", details: object): void {
    if (this.#endedBy !== undefined) return;
    this.#endedBy = reason;
    this.#log.warn({ file: this.#file, ...details }, `recording ended by ${reason}`);
    this.#stream.end();
  }

  #drop(): void {
    this.#dropped++;
    if (this.#dropped === 1) this.#log.warn({ file: this.#file }, "the disk is too slow: requests are left unrecorded");
  }

  #hash(sessionKey: string): string {
    return createHmac("sha256", this.#sessionSalt).update(sessionKey).digest("hex").slice(0, SESSION_DIGITS);
  }
}

/**
 * What a block of `BLOCK_UNITS` text units stands for in every line of the file: four units a token, as English has.
 * Other text has fewer or more; what it shares is then under- or overstated by as much.
 */
const BLOCK_TOKENS = 64;

/** Enough for seconds of traffic, too little to matter. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;

/** 64 bits: no two of a million sessions meet. */
const SESSION_DIGITS = 16;

/** A header has about a hundred bytes. */
const MAX_HEADER_BYTES = 1024;

/** Longer than any line: one of a prompt of a million tokens has 300 kB. */
const MAX_TAIL_BYTES = 2 * 1024 * 1024;

interface OpenRecording {
  readonly fd: number;
  /** What it holds already. */
  readonly bytes: number;
  /** Undefined: it is new. */
  readonly startedAtMs: number | undefined;
}

function open(file: string): OpenRecording {
  let fd: number;
  try {
    // Block hashes confirm a prompt that somebody knows: for the owner's eyes only.
    fd = openSync(file, "a+", 0o600);
  } catch (error) {
    throw new RecordingError(`cannot record to ${file}: ${(error as NodeJS.ErrnoException).code}`);
  }
  const bytes = fstatSync(fd).size;
  if (bytes === 0) return { fd, bytes, startedAtMs: undefined };
  const startedAtMs = headerOf(fd)?.startedAt;
  if (startedAtMs !== undefined) return { fd, bytes: wholeLinesOf(fd, bytes), startedAtMs };
  closeSync(fd);
  throw new RecordingError(`cannot record to ${file}: it holds something that is no recording of a balancer`);
}

/** Cuts off a last line that a crash left half written, or the next would be lost with it. Returns the size. */
function wholeLinesOf(fd: number, bytes: number): number {
  const tail = Buffer.alloc(Math.min(bytes, MAX_TAIL_BYTES));
  readSync(fd, tail, 0, tail.length, bytes - tail.length);
  const end = bytes - tail.length + tail.lastIndexOf("\n") + 1;
  if (end < bytes && tail.includes("\n")) {
    ftruncateSync(fd, end);
    return end;
  }
  return bytes;
}

/** Undefined: the file does not begin with one. */
function headerOf(fd: number): RecordingHeader | undefined {
  const start = Buffer.alloc(MAX_HEADER_BYTES);
  const text = start.toString("utf8", 0, readSync(fd, start, 0, start.length, 0));
  try {
    return recordingHeaderSchema.safeParse(JSON.parse(text.slice(0, text.indexOf("\n")))).data;
  } catch {
    return undefined;
  }
}

function isCount(tokens: number | undefined): tokens is number {
  return Number.isSafeInteger(tokens) && Number(tokens) > 0;
}
