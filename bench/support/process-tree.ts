import { readdirSync, readFileSync } from "node:fs";

/** What a process and all its descendants have used so far. */
export interface TreeUsage {
  /** User and system time, that of descendants already gone included. */
  readonly cpuMs: number;
  /** Resident memory; pages shared between the processes count once each. */
  readonly residentBytes: number;
}

/** One line of /proc/PID/stat. */
interface ProcessStat {
  readonly pid: number;
  readonly parent: number;
  readonly ticks: number;
  readonly residentPages: number;
}

/** Linux reports times to user space in ticks of 10 ms, whatever its own. */
const TICK_MS = 10;
const PAGE_BYTES = 4096;

/** Reads the kernel's accounts of the tree under `root`. @throws when the root is gone. */
export function treeUsage(root: number): TreeUsage {
  const stats = allStats();
  const tree = descendants(stats, root);
  if (tree.length === 0) throw new Error(`process ${root} is gone`);
  return {
    cpuMs: tree.reduce((ticks, stat) => ticks + stat.ticks, 0) * TICK_MS,
    residentBytes: tree.reduce((pages, stat) => pages + stat.residentPages, 0) * PAGE_BYTES,
  };
}

/** User and system time of one process so far, in milliseconds. @throws when it is gone. */
export function processCpuMs(pid: number): number {
  const [stat] = processStat(pid);
  if (stat === undefined) throw new Error(`process ${pid} is gone`);
  return stat.ticks * TICK_MS;
}

/** Time that all CPUs of the machine were busy, in milliseconds since boot. */
export function machineBusyMs(): number {
  const [line = ""] = readFileSync("/proc/stat", "latin1").split("\n", 1);
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0, steal = 0] = line.split(/\s+/).slice(1).map(Number);
  return (user + nice + system + irq + softIrq + steal) * TICK_MS;
}

function descendants(stats: readonly ProcessStat[], root: number): ProcessStat[] {
  const own = stats.filter(({ pid }) => pid === root);
  const children = stats.filter(({ parent }) => parent === root);
  return [...own, ...children.flatMap(({ pid }) => descendants(stats, pid))];
}

function allStats(): ProcessStat[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => processStat(Number(pid)));
}

/** Empty: it has ended meanwhile. */
function processStat(pid: number): ProcessStat[] {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return [];
  }
  // The command in brackets may hold spaces and brackets itself: the fields begin behind the last one.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const field = (number: number): number => Number(fields[number - 3]);
  return [
    {
      pid,
      parent: field(4),
      ticks: field(14) + field(15) + field(16) + field(17),
      residentPages: field(24),
    },
  ];
}
