import { readdirSync, readFileSync } from "node:fs";

/**
 * Milliseconds that the living threads of a process were ready to run and had no core so far, from
 * /proc/PID/task/TID/schedstat: what others on the machine took from it. @throws when the process is gone.
 */
export function coreWaitMs(pid: number): number {
  const folder = `/proc/${pid}/task`;
  return readdirSync(folder).reduce((total, thread) => total + threadWaitMs(`${folder}/${thread}/schedstat`), 0);
}

/** 0 for a thread that has just ended. */
function threadWaitMs(file: string): number {
  try {
    const [, waitNs = "0"] = readFileSync(file, "latin1").trim().split(" ");
    return Number(waitNs) / 1e6;
  } catch {
    return 0;
  }
}
