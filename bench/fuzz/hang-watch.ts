import { Worker } from "node:worker_threads";

/** Watches from another thread whether inputs go on: one that never returns stops everything in this one. */
export interface HangWatch {
  /** Another input begins. */
  readonly beat: () => void;
  stop(): Promise<void>;
}

/** Longer than an input may take before it fails by itself. */
const STUCK_MS = 30_000;

/** Ends the process, with a word about where, when an input never returns. */
export function watchForHang(target: string, seed: number): HangWatch {
  const beats = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(WATCH, { eval: true, workerData: { beats, target, seed, stuckMs: STUCK_MS } });
  return {
    beat: () => void Atomics.add(beats, 0, 1),
    stop: async () => void (await worker.terminate()),
  };
}

/** Plain JavaScript: a worker thread has no loader of its own. */
const WATCH = `
const { workerData: { beats, target, seed, stuckMs } } = require("node:worker_threads");
let last = -1;
setInterval(() => {
  const now = Atomics.load(beats, 0);
  if (now === last && now > 0) {
    require("node:fs").writeSync(2, "error: " + target + ", seed " + seed + ": input " + now + " does not return\\n");
    process.kill(process.pid, "SIGKILL");
  }
  last = now;
}, stuckMs);
`;
