import { readdirSync, readFileSync } from "node:fs";

/**
 * What a process and all its descendants have used so far. Of two readings the time between them is `cpuMsBetween`,
 * which knows more than the difference of their `cpuMs`.
 */
export interface TreeUsage {
  /** User and system time, that of threads and descendants already gone included as far as ticks of 10 ms tell. */
  readonly cpuMs: number;
  /** Resident memory; pages shared between the processes count once each. */
  readonly residentBytes: number;
  readonly processes: readonly ProcessUsage[];
}

/** What one process has used so far, from two accounts of the same clock of the scheduler. */
export interface ProcessUsage {
  readonly pid: number;
  /** Nanoseconds that each living thread ran, by its id, from /proc/PID/task/TID/schedstat. Exact. */
  readonly threadNs: ReadonlyMap<number, number>;
  /** Time of all threads, those that ended included, from /proc/PID/stat. In ticks, rounded down. */
  readonly ownMs: number;
  /** The same of descendants that ended and were waited for; theirs are in it. */
  readonly reapedMs: number;
  readonly residentBytes: number;
}

/** Linux reports times in `stat` in ticks of 10 ms, whatever its own. */
const TICK_MS = 10;
/** User and system time are rounded down apart: a difference of two readings is off by less than this. */
const ROUNDING_MS = 2 * TICK_MS;
const PAGE_BYTES = 4096;

/** Reads the kernel's accounts of the tree under `root`. @throws when the root is gone. */
export function treeUsage(root: number): TreeUsage {
  const processes = descendants(allStats(), root).map(processUsage);
  if (processes.length === 0) throw new Error(`process ${root} is gone`);
  return {
    cpuMs: sumOf(processes, totalMs),
    residentBytes: sumOf(processes, ({ residentBytes }) => residentBytes),
    processes,
  };
}

/**
 * Time that a tree used between two readings of it, in milliseconds.
 *
 * Threads that live at both readings, or began between them, are counted by the scheduler's nanoseconds, which is
 * exact; while the tree runs, a reading may lack what a thread has run since the last tick of the kernel. The time of a
 * thread that ended meanwhile is lost to that account, but not to `stat`: when it shows more than the threads do, by
 * more than it can be off, it counts, which is exact to 20 ms for that process. Children that ended count by what their
 * parent reaped, less what they had used at the first reading, exact to 20 ms per parent.
 *
 * Not seen: children that ended unnoticed because their parent ignores SIGCHLD, and processes that leave the tree.
 */
export function cpuMsBetween(before: TreeUsage, after: TreeUsage): number {
  const earlier = new Map(before.processes.map((usage) => [usage.pid, usage]));
  const alive = new Set(after.processes.map(({ pid }) => pid));
  const gone = before.processes.filter(({ pid }) => !alive.has(pid));
  const reapedMs = sumOf(after.processes, (usage) => usage.reapedMs - (earlier.get(usage.pid)?.reapedMs ?? 0));
  return (
    sumOf(after.processes, (usage) => ownMsSince(earlier.get(usage.pid), usage)) +
    Math.max(0, reapedMs - sumOf(gone, totalMs))
  );
}

/** User and system time of one process so far, in milliseconds. @throws when it is gone. */
export function processCpuMs(pid: number): number {
  const [stat] = readStat(pid);
  if (stat === undefined) throw new Error(`process ${pid} is gone`);
  return (stat.ownTicks + stat.reapedTicks) * TICK_MS;
}

/** Time that all CPUs of the machine were busy, in milliseconds since boot. */
export function machineBusyMs(): number {
  const [line = ""] = readFileSync("/proc/stat", "latin1").split("\n", 1);
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0, steal = 0] = line.split(/\s+/).slice(1).map(Number);
  return (user + nice + system + irq + softIrq + steal) * TICK_MS;
}

/** Nanoseconds on a CPU: the first field of a `schedstat`. */
export function ranNs(schedstat: string): number {
  return Number(schedstat.slice(0, schedstat.indexOf(" ")));
}

/** What is read of one line of /proc/PID/stat. */
export interface ProcessStat {
  readonly pid: number;
  readonly parent: number;
  readonly ownTicks: number;
  readonly reapedTicks: number;
  readonly residentPages: number;
}

export function parseStat(text: string): ProcessStat {
  // The command in brackets may hold spaces and brackets itself: the fields begin behind the last one.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const field = (number: number): number => Number(fields[number - 3]);
  return {
    pid: Number.parseInt(text, 10),
    parent: field(4),
    ownTicks: field(14) + field(15),
    reapedTicks: field(16) + field(17),
    residentPages: field(24),
  };
}

/** All that a process used, its reaped descendants included. */
function totalMs({ threadNs, ownMs, reapedMs }: ProcessUsage): number {
  return Math.max(sumOf([...threadNs.values()], nsToMs), ownMs) + reapedMs;
}

/** What the threads of a process used since an earlier reading; undefined: it began after it. */
function ownMsSince(earlier: ProcessUsage | undefined, now: ProcessUsage): number {
  const threadsMs = sumOf([...now.threadNs], ([id, ns]) => nsToMs(ns - (earlier?.threadNs.get(id) ?? 0)));
  const statMs = now.ownMs - (earlier?.ownMs ?? 0);
  return statMs - threadsMs > ROUNDING_MS ? statMs : threadsMs;
}

function descendants(stats: readonly ProcessStat[], root: number): ProcessStat[] {
  const own = stats.filter(({ pid }) => pid === root);
  const children = stats.filter(({ parent }) => parent === root);
  return [...own, ...children.flatMap(({ pid }) => descendants(stats, pid))];
}

function processUsage({ pid, ownTicks, reapedTicks, residentPages }: ProcessStat): ProcessUsage {
  return {
    pid,
    threadNs: new Map(numbersIn(`/proc/${pid}/task`).flatMap((id) => threadNs(pid, id))),
    ownMs: ownTicks * TICK_MS,
    reapedMs: reapedTicks * TICK_MS,
    residentBytes: residentPages * PAGE_BYTES,
  };
}

/** Empty: it has ended meanwhile. */
function threadNs(pid: number, id: number): [number, number][] {
  return readProc(`/proc/${pid}/task/${id}/schedstat`).map((text) => [id, ranNs(text)]);
}

function allStats(): ProcessStat[] {
  return numbersIn("/proc").flatMap(readStat);
}

/** Empty: it has ended meanwhile. */
function readStat(pid: number): ProcessStat[] {
  return readProc(`/proc/${pid}/stat`).map(parseStat);
}

/** Ids of processes or threads: the entries that are numbers. Empty: the folder is gone. */
function numbersIn(folder: string): number[] {
  try {
    return readdirSync(folder)
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  } catch {
    return [];
  }
}

/** Empty: the file is gone. */
function readProc(file: string): string[] {
  try {
    return [readFileSync(file, "latin1")];
  } catch {
    return [];
  }
}

function nsToMs(ns: number): number {
  return ns / 1e6;
}

function sumOf<T>(values: readonly T[], value: (of: T) => number): number {
  return values.reduce((total, of) => total + value(of), 0);
}
