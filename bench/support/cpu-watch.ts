import { cpus } from "node:os";
import { machineBusyMs, processCpuMs } from "./process-tree.ts";

/** How busy processes and machine were. */
export interface CpuUse {
  /** Share of one core, by process, 0 to 1. */
  readonly processes: Readonly<Record<string, number>>;
  /** Share of all cores, whoever used them, 0 to 1. */
  readonly machine: number;
  /** Share of the seconds in which a process had its core to the limit, or the machine all of them, 0 to 1. */
  readonly saturated: number;
}

interface Watched {
  readonly name: string;
  cpuMs(): number;
  /** How much of it there is per unit of time. */
  readonly cores: number;
}

const PERIOD_MS = 1000;
/** Above this share waiting for a core begins to tell on latency. */
const LIMIT = 0.95;

const MACHINE = "machine";
const CLIENT = "client";

/** Watches the CPU use of processes, this one included, second by second. */
export class CpuWatch {
  readonly #watched: readonly Watched[];
  readonly #timer: NodeJS.Timeout;
  readonly #startMs = performance.now();
  readonly #start: readonly number[];
  #last: readonly number[];
  #lastMs: number;
  #periods = 0;
  #saturatedPeriods = 0;

  constructor(processes: readonly { readonly name: string; readonly pid: number }[]) {
    this.#watched = [
      { name: MACHINE, cpuMs: machineBusyMs, cores: cpus().length },
      { name: CLIENT, cpuMs: () => processCpuMs(process.pid), cores: 1 },
      ...processes.map(({ name, pid }) => ({ name, cpuMs: () => processCpuMs(pid), cores: 1 })),
    ];
    this.#start = this.#read();
    this.#last = this.#start;
    this.#lastMs = this.#startMs;
    this.#timer = setInterval(() => this.#sample(), PERIOD_MS);
  }

  /** Ends the watch. */
  stop(): CpuUse {
    clearInterval(this.#timer);
    const shares = this.#shares(this.#start, this.#read(), performance.now() - this.#startMs);
    const { [MACHINE]: machine = 0, ...processes } = Object.fromEntries(
      this.#watched.map(({ name }, index) => [name, shares[index] as number]),
    );
    return { processes, machine, saturated: this.#periods === 0 ? 0 : this.#saturatedPeriods / this.#periods };
  }

  #read(): number[] {
    return this.#watched.map((watched) => watched.cpuMs());
  }

  #sample(): void {
    const nowMs = performance.now();
    const now = this.#read();
    const shares = this.#shares(this.#last, now, nowMs - this.#lastMs);
    this.#periods++;
    if (shares.some((share) => share >= LIMIT)) this.#saturatedPeriods++;
    this.#last = now;
    this.#lastMs = nowMs;
  }

  #shares(from: readonly number[], to: readonly number[], elapsedMs: number): number[] {
    return this.#watched.map(({ cores }, index) => {
      const usedMs = (to[index] as number) - (from[index] as number);
      return usedMs / elapsedMs / cores;
    });
  }
}
