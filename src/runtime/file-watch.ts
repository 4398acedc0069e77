import { readFile } from "node:fs/promises";
import { createPollLoop, type PollLoop } from "../signals/index.ts";
import type { Clock } from "./clock.ts";

/** How a file is watched. */
export interface FileWatchOptions {
  readonly path: string;
  readonly clock: Clock;
  /** What is in the file by now; called with its first text too. */
  readonly changed: (text: string) => void;
  /** The file was readable, or has not been read yet, and is not; `reason` is an error code. */
  readonly unreadable: (reason: string) => void;
  /** Undefined: `WATCH_INTERVAL_MS`. */
  readonly intervalMs?: number | undefined;
}

/** A file of this kind is small: reading it costs less than a probe does. */
export const WATCH_INTERVAL_MS = 2_000;
/** Whoever writes a file in place has finished by then. */
const SETTLE_MS = 100;

/**
 * Tells when the text of a file changes, by reading it again and again: editors that rename, mounted volumes that swap
 * a symbolic link and network file systems that tell nobody are all the same to it. A change counts once two readings
 * in a row agree on it, so that a file that is being written is left alone.
 */
export class FileWatch {
  readonly #options: FileWatchOptions;
  readonly #loop: PollLoop;
  /** As told last; undefined: nothing yet. */
  #told: string | undefined;
  /** As read last; undefined: not readable, or nothing yet. */
  #read: string | undefined;
  #isReadable = true;

  constructor(options: FileWatchOptions) {
    const { clock } = options;
    this.#options = options;
    this.#loop = createPollLoop({ task: () => this.#look(), minGapMs: 0, nowMs: () => clock.nowMs() });
  }

  start(): void {
    this.#loop.runSoon();
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
  }

  async #look(): Promise<number> {
    const { path, changed, unreadable, intervalMs = WATCH_INTERVAL_MS } = this.#options;
    let text: string;
    try {
      text = await readFile(path, "utf8");
    } catch (error) {
      if (this.#isReadable) unreadable(codeOf(error));
      this.#isReadable = false;
      this.#read = undefined;
      return intervalMs;
    }
    this.#isReadable = true;
    const isSettled = text === this.#read || this.#told === undefined;
    this.#read = text;
    if (text === this.#told) return intervalMs;
    if (!isSettled) return Math.min(SETTLE_MS, intervalMs);
    this.#told = text;
    changed(text);
    return intervalMs;
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "error";
}
