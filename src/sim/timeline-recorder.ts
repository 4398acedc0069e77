import type { EndpointSample, Timeline } from "./result.ts";

/** Samples the fleet at even intervals, however long the simulation goes on. */
export class TimelineRecorder {
  readonly #ids: readonly string[];
  readonly #sample: (atMs: number) => readonly EndpointSample[];
  #intervalMs: number;
  #atMs: number[] = [];
  /** One row per entry of `#atMs`, in the order of the ids. */
  #rows: (readonly EndpointSample[])[] = [];
  #dueMs = 0;

  /**
   * @param sample The endpoints at a time, in the order of `ids`.
   * @param expectedMs How long the simulation will be, as far as it is known.
   */
  constructor(ids: readonly string[], sample: (atMs: number) => readonly EndpointSample[], expectedMs: number) {
    this.#ids = ids;
    this.#sample = sample;
    this.#intervalMs = Math.max(MIN_INTERVAL_MS, expectedMs / (MAX_SAMPLES - MAX_SAMPLES / 8));
  }

  /** Takes the samples that are due before what happens at `nowMs` changes anything. */
  recordUntil(nowMs: number): void {
    while (this.#dueMs <= nowMs) {
      this.#atMs.push(this.#dueMs);
      this.#rows.push(this.#sample(this.#dueMs));
      if (this.#rows.length === MAX_SAMPLES) this.#thin();
      this.#dueMs = (this.#atMs.at(-1) ?? 0) + this.#intervalMs;
    }
  }

  timeline(): Timeline {
    const endpoints = this.#ids.map((id, i) => [id, this.#rows.map((row) => row[i] as EndpointSample)] as const);
    return { atMs: this.#atMs, endpoints: Object.fromEntries(endpoints) };
  }

  /** It takes longer than expected: keeps every second sample, and samples half as often. */
  #thin(): void {
    this.#atMs = this.#atMs.filter((_, i) => i % 2 === 0);
    this.#rows = this.#rows.filter((_, i) => i % 2 === 0);
    this.#intervalMs *= 2;
  }
}

/** More points than that no plot shows. */
const MAX_SAMPLES = 256;
const MIN_INTERVAL_MS = 10;
