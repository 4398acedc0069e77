import type { AnswerSizes, Clock, RecordedProfile, RequestRecorder } from "../runtime/index.ts";
import type { FromWorker } from "./messages.ts";

/** Has the primary record: one process writes the file, so that no line is torn and a session is one to all workers. */
export class RemoteRecorder implements RequestRecorder {
  readonly #clock: Clock;
  #unsent = 0;
  #drained: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  record({ promptTokens, prefix, sessionKey, model }: RecordedProfile, arrivedAtMs: number, sizes: AnswerSizes): void {
    // A primary that does not keep up leaves out what the disk would not have taken in time either.
    if (this.#unsent >= MAX_UNSENT) return;
    const request = { promptTokens, prefix, sessionKey, model };
    const record = { request, arrivedAgoMs: this.#clock.nowMs() - arrivedAtMs, sizes };
    this.#unsent++;
    process.send?.({ kind: "record", record } satisfies FromWorker, undefined, undefined, () => this.#sent());
  }

  async close(): Promise<void> {
    if (this.#unsent === 0) return;
    await new Promise<void>((resolve) => {
      this.#drained = resolve;
    });
  }

  #sent(): void {
    this.#unsent--;
    if (this.#unsent === 0) this.#drained?.();
  }
}

/** A second of requests at the most. */
const MAX_UNSENT = 4_096;
