import { seededRandom } from "../../core/index.ts";
import { arrivalTimes, exponentialGaps } from "./gaps.ts";
import { type TraceLine, TraceRow, type TraceSource, traceLines } from "./trace-text.ts";
import type { Arrival, Workload, WorkloadRequest } from "./workload.ts";
import { WorkloadError } from "./workload-error.ts";

/** Which sessions to take from a file of agent sessions, and how. */
export interface WekaOptions {
  readonly name: string;
  /** Sessions by their place in the file, counted from 0, both ends included; default: all. */
  readonly sessions?: { readonly from: number; readonly to: number } | undefined;
  /** Mean time from the start of one session to the next; starts are Poisson. */
  readonly sessionGapMs?: number | undefined;
  /** Of the starts. */
  readonly seed?: number | undefined;
  /** A multiple of the file's own blocks; coarser ones are cheaper to simulate. */
  readonly blockTokens?: number | undefined;
  /** A session ends before its first prompt above this; default: no bound. */
  readonly maxPromptTokens?: number | undefined;
}

/** The published sessions last two hours in the mean: about 120 of them are then open at a time. */
const SESSION_GAP_MS = 60_000;

/** Four of the file's blocks: of a prompt of 150,000 tokens less than 0.2 % is rounded away. */
const BLOCK_TOKENS = 256;

/**
 * Reads agent sessions, one JSON object per line. The file has no times of arrival, so sessions start at random;
 * within one, each request follows the answer to the one before and the recorded think time.
 */
export function readWeka(source: TraceSource, options: WekaOptions): Workload {
  const { name, sessionGapMs = SESSION_GAP_MS, seed = 1, blockTokens = BLOCK_TOKENS } = options;
  const { maxPromptTokens = Number.POSITIVE_INFINITY } = options;
  const starts = arrivalTimes(exponentialGaps, 1 / sessionGapMs, 0, Number.POSITIVE_INFINITY, seededRandom(seed));
  const arrivals: Arrival[] = [];
  let firstFreeId = 0;
  for (const line of selectedLines(source, options.sessions)) {
    // Drawn for every session, also for one that the bound leaves empty: the bound does not move the others.
    const atMs = starts.next().value as number;
    const session = new Session(TraceRow.ofLine(line), line, blockTokens);
    const request = session.chain(maxPromptTokens, firstFreeId);
    firstFreeId += session.highestId + 1;
    if (request !== undefined) arrivals.push({ atMs, request });
  }
  return { name, blockTokens, arrivals };
}

/** Lines outside the selection are not parsed: a session may be a megabyte. */
function* selectedLines(source: TraceSource, sessions: WekaOptions["sessions"]): Generator<TraceLine> {
  const { from, to } = sessions ?? { from: 0, to: Number.POSITIVE_INFINITY };
  let index = 0;
  for (const line of traceLines(source)) {
    if (index >= from) yield line;
    if (index++ >= to) return;
  }
  if (index <= from || (sessions !== undefined && index <= to)) {
    throw new WorkloadError(`sessions ${from} to ${to} wanted, but there are only ${index}, counted from 0`);
  }
}

/** A request of a session, with its blocks still in the numbers of the file. */
interface Turn {
  /** From the end of the answer before. */
  readonly thinkMs: number;
  readonly row: TraceRow;
}

class Session {
  readonly #key: string;
  readonly #row: TraceRow;
  readonly #fileBlockTokens: number;
  readonly #blockTokens: number;
  /** The highest block id in use, in the numbers of the file; undefined ids: -1. */
  highestId = -1;

  constructor(row: TraceRow, { number }: TraceLine, blockTokens: number) {
    if (row.has("hash_id_scope") && row.text("hash_id_scope") !== "local") {
      throw row.error('hash_id_scope: expected "local"');
    }
    this.#fileBlockTokens = row.count("block_size", 1);
    if (blockTokens % this.#fileBlockTokens !== 0) {
      throw row.error(`block_size: ${blockTokens} tokens per block wanted, which is no multiple of it`);
    }
    // The line as well: nothing keeps a file from having two sessions of one id.
    this.#key = `${row.text("id")}:${number}`;
    this.#row = row;
    this.#blockTokens = blockTokens;
  }

  /** The first request, leading to all others up to the bound; undefined: none is within it. */
  chain(maxPromptTokens: number, firstFreeId: number): WorkloadRequest | undefined {
    const turns = turnsOf(this.#row.rows("requests"));
    const over = turns.findIndex(({ row }) => row.count("in", 1) > maxPromptTokens);
    const kept = over === -1 ? turns : turns.slice(0, over);
    return kept.reduceRight<{ thinkMs: number; request: WorkloadRequest } | undefined>(
      (next, { thinkMs, row }) => ({ thinkMs, request: this.#request(row, firstFreeId, next) }),
      undefined,
    )?.request;
  }

  #request(row: TraceRow, firstFreeId: number, next: WorkloadRequest["next"]): WorkloadRequest {
    const promptTokens = row.count("in", 1);
    return {
      promptTokens,
      // An answer has a first token, or nobody could have told when it came.
      outputTokens: Math.max(1, row.count("out")),
      blockIds: this.#blockIds(row.counts("hash_ids"), promptTokens, firstFreeId),
      sessionKey: this.#key,
      tenant: undefined,
      next,
    };
  }

  /** Full blocks only. A coarse block is named by the last of the file's blocks in it: ids stand for whole prefixes. */
  #blockIds(ids: readonly number[], promptTokens: number, firstFreeId: number): readonly number[] {
    const idsPerBlock = this.#blockTokens / this.#fileBlockTokens;
    const blocks = Math.min(Math.floor(ids.length / idsPerBlock), Math.floor(promptTokens / this.#blockTokens));
    return Array.from({ length: blocks }, (_, block) => {
      const id = ids[(block + 1) * idsPerBlock - 1] as number;
      if (id > this.highestId) this.highestId = id;
      return firstFreeId + id;
    });
  }
}

/**
 * The requests of a session or a sub-agent in the order they are sent. A parent waits for its sub-agents, so their
 * requests stand in its chain, one sub-agent after another even where they ran side by side.
 */
function turnsOf(entries: readonly TraceRow[]): Turn[] {
  const turns: Turn[] = [];
  /** End of the last answer or sub-agent. */
  let endS = 0;
  /** The recorded think time counts from the last answer whose duration was recorded. */
  let isEndRecorded = true;
  for (const entry of entries) {
    const startS = startOf(entry);
    const idleS = Math.max(0, startS - endS);
    if (!entry.has("requests")) {
      const thinkS = isEndRecorded && entry.has("think_time") ? entry.amount("think_time") : idleS;
      turns.push({ thinkMs: thinkS * 1000, row: entry });
      isEndRecorded = entry.has("api_time");
      endS = startS + (isEndRecorded ? entry.amount("api_time") : 0);
      continue;
    }
    const [first, ...others] = turnsOf(entry.rows("requests"));
    if (first === undefined) continue;
    turns.push({ ...first, thinkMs: first.thinkMs + idleS * 1000 }, ...others);
    isEndRecorded = false;
    endS = Math.max(endS, entry.amount("t"));
  }
  return turns;
}

/** `t` is the start of a request, but the end of a sub-agent. */
function startOf(entry: TraceRow): number {
  const lastsMs = entry.has("requests") && entry.has("duration_ms") ? entry.amount("duration_ms") : 0;
  return entry.amount("t") - lastsMs / 1000;
}
