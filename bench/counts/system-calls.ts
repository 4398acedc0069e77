import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";

/** System calls of a process and all its threads. */
export interface SystemCalls {
  /** Those that read and write, of files and sockets. */
  readonly readsAndWrites: number;
  /** All of them but futex; undefined: nothing here can count them. */
  readonly all: number | undefined;
}

/**
 * Counts what the process `pid` does during `work`. The kernel counts reads and writes for everybody; all calls are
 * counted by strace, which slows the process down.
 * @param strace The program; undefined: there is none. @param file Where it writes.
 */
export async function systemCalls(
  pid: number,
  strace: string | undefined,
  file: string,
  work: () => Promise<unknown>,
): Promise<SystemCalls> {
  const tracer = strace === undefined ? undefined : await attach(strace, pid, file);
  const before = readsAndWrites(pid);
  await work();
  const counted = readsAndWrites(pid) - before;
  if (tracer === undefined) return { readsAndWrites: counted, all: undefined };
  tracer.kill("SIGINT");
  await once(tracer, "exit");
  return { readsAndWrites: counted, all: totalCalls(await readFile(file, "utf8")) };
}

/** All but those with which V8's own threads wait for each other: how often they do says nothing. */
const TRACED = "trace=!futex";

/** Undefined: it may not look into other processes here. */
async function attach(strace: string, pid: number, file: string): Promise<ChildProcess | undefined> {
  const tracer = spawn(strace, ["-c", "-f", "-e", TRACED, "-p", String(pid), "-o", file], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const attached = new Promise<boolean>((resolve) => {
    tracer.stderr.on("data", (data: Buffer) => {
      if (data.includes("attached")) resolve(true);
    });
    tracer.once("exit", () => resolve(false));
  });
  return (await attached) ? tracer : undefined;
}

/** Calls in the last line of strace's table; undefined: there is none. */
export function totalCalls(table: string): number | undefined {
  const lines = table.split("\n");
  const head = lines.find((line) => line.includes("calls"));
  const total = lines.find((line) => line.endsWith(" total"));
  if (head === undefined || total === undefined) return undefined;
  // By its column, as others may be empty: the figures stand right-aligned under their heads.
  const upToCalls = total.slice(0, head.indexOf("calls") + "calls".length);
  return Number(upToCalls.trim().split(/ +/).at(-1));
}

function readsAndWrites(pid: number): number {
  const text = readFileSync(`/proc/${pid}/io`, "latin1");
  return [...text.matchAll(/^sysc[rw]: (\d+)$/gm)].reduce((total, [, calls]) => total + Number(calls), 0);
}
