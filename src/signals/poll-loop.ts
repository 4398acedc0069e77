/** Runs one task again and again, never twice at a time; owns the timer between the runs. */
export interface PollLoop {
  /** Brings the next run, also the very first, forward: at once, or as soon as the gap since the last one allows. */
  runSoon(): void;
  /** Resolves when no run is left. The task itself is not interrupted. */
  stop(): Promise<void>;
}

export interface PollLoopOptions {
  /** Resolves to the time until the next run. */
  task(): Promise<number>;
  /** Least time between the starts of two runs, however often `runSoon` is called. */
  readonly minGapMs: number;
  nowMs(): number;
}

export function createPollLoop({ task, minGapMs, nowMs }: PollLoopOptions): PollLoop {
  let isStopped = false;
  let isWanted = false;
  let startedAtMs = Number.NEGATIVE_INFINITY;
  let dueAtMs = Number.POSITIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    isWanted = false;
    startedAtMs = nowMs();
    const delayMs = await task();
    running = undefined;
    if (!isStopped) schedule(isWanted ? Math.min(untilGapIsOver(), delayMs) : delayMs);
  }

  function schedule(delayMs: number): void {
    clearTimeout(timer);
    dueAtMs = nowMs() + delayMs;
    timer = setTimeout(() => {
      running = run();
    }, delayMs);
  }

  function untilGapIsOver(): number {
    return Math.max(0, startedAtMs + minGapMs - nowMs());
  }

  function runSoon(): void {
    if (isStopped) return;
    if (running !== undefined) isWanted = true;
    else schedule(Math.min(untilGapIsOver(), dueAtMs - nowMs()));
  }

  return {
    runSoon,
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
