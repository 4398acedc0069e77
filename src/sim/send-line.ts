import type { Job } from "./job.ts";

/** Requests on their way to an engine. All take the same time, so they arrive in the order in which they were sent. */
export class SendLine {
  readonly #delayMs: number;
  #line: { readonly atMs: number; readonly job: Job }[] = [];
  #head = 0;

  constructor(delayMs: number) {
    this.#delayMs = delayMs;
  }

  /** Infinite: nothing is on its way. */
  get firstAtMs(): number {
    return this.#line[this.#head]?.atMs ?? Number.POSITIVE_INFINITY;
  }

  add(job: Job, nowMs: number): void {
    this.#line.push({ atMs: nowMs + this.#delayMs, job });
  }

  /** The next to arrive; undefined: nothing is on its way. */
  take(): Job | undefined {
    const job = this.#line[this.#head++]?.job;
    if (this.#head >= this.#line.length) {
      this.#line = [];
      this.#head = 0;
    } else if (this.#head >= MAX_TAKEN) {
      this.#line = this.#line.slice(this.#head);
      this.#head = 0;
    }
    return job;
  }
}

/** The taken ones are let go in batches, so that a line that is never empty does not grow for ever. */
const MAX_TAKEN = 1_024;
