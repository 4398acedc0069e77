import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { parseSamples, type Sample, sumOf } from "./metric-samples.ts";
import { PROGRAM } from "./program.ts";
import { until } from "./until.ts";

/** A line of the log. */
type LogLine = Readonly<Record<string, unknown>>;

/** A balancer of several processes, and what tests ask of it. */
export interface WorkerBalancer {
  readonly primary: ChildProcess;
  readonly listenUrl: string;
  /** Address of the admin listener. */
  readonly admin: string;
  readonly configFile: string;
  readonly folder: string;
  lines(): readonly LogLine[];
  /** Waits for a line that has all of `part`. */
  logged(part: LogLine): Promise<void>;
  /** What went to standard error. */
  errors(): string;
  /** Process ids of the workers that are there now. */
  workers(): readonly number[];
  samples(): Promise<readonly Sample[]>;
  /** Sum of the series of a metric; `labels` narrows it. */
  metric(name: string, labels?: Readonly<Record<string, string>>): Promise<number>;
  /** How the primary ended. */
  ended(): Promise<{ readonly code: number | null; readonly signal: string | null }>;
}

/** Starts one with two workers and waits until it is ready. It is ended when the test is. @param settings As in the file. */
export async function startWorkerBalancer(settings: object): Promise<WorkerBalancer> {
  const balancer = runWorkerBalancer(settings);
  await until(() => serving(balancer) !== undefined || balancer.primary.exitCode !== null);
  const line = serving(balancer);
  if (line === undefined) throw new Error(`it ended: ${balancer.errors()}`);
  const running = { ...balancer, listenUrl: String(line.listen), admin: String(line.admin) };
  await until(async () => (await fetch(`${running.admin}/readyz`)).status === 200);
  return running;
}

/** As `startWorkerBalancer`, without waiting for anything. */
export function runWorkerBalancer(settings: object): WorkerBalancer {
  const folder = mkdtempSync(join(tmpdir(), "evenkeel-workers-"));
  const configFile = join(folder, "evenkeel.yaml");
  writeFileSync(configFile, JSON.stringify(fileOf(settings)));
  // A group of its own, as a shell makes one: a signal of the terminal goes to all of it.
  const primary = spawn(process.execPath, [PROGRAM, "serve", "--config", configFile], {
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  onTestFinished(async () => {
    const workers = workersOf(primary);
    if (primary.exitCode === null && primary.signalCode === null) primary.kill("SIGKILL");
    await until(() => !workers.some(isAlive));
    rmSync(folder, { recursive: true });
  });
  let output = "";
  let errors = "";
  primary.stdout?.on("data", (chunk) => {
    output += chunk;
  });
  primary.stderr?.on("data", (chunk) => {
    errors += chunk;
  });
  const lines = (): readonly LogLine[] =>
    output
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as LogLine);
  return {
    primary,
    listenUrl: "",
    admin: "",
    configFile,
    folder,
    lines,
    logged: (part) =>
      until(() => lines().some((line) => Object.entries(part).every(([key, value]) => line[key] === value))),
    errors: () => errors,
    workers: () => workersOf(primary),
    async samples() {
      return parseSamples(await (await fetch(`${this.admin}/metrics`)).text());
    },
    async metric(name, labels = {}) {
      return sumOf(await this.samples(), name, labels);
    },
    async ended() {
      if (primary.exitCode === null && primary.signalCode === null) await once(primary, "exit");
      return { code: primary.exitCode, signal: primary.signalCode };
    },
  };
}

/** Settings as a file has them, for a balancer of two workers on free ports. */
export function fileOf(settings: object): object {
  const health = { interval: "200ms", slowStart: "off" };
  const listeners = { listen: "127.0.0.1:0", admin: "127.0.0.1:0", workers: 2 };
  return { ...listeners, policy: "round_robin", log: { format: "json" }, health, ...settings };
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function serving({ lines }: Pick<WorkerBalancer, "lines">): LogLine | undefined {
  return lines().find(({ msg }) => msg === "serving");
}

function workersOf({ pid }: ChildProcess): readonly number[] {
  const text = execFileSync("ps", ["-A", "-o", "pid=,ppid=,args="], { encoding: "utf8" });
  const rows = text.split("\n").map((row) => row.trim().split(/\s+/));
  return rows
    .filter(([, parent, ...args]) => Number(parent) === pid && /worker-main/.test(args.join(" ")))
    .map(([own]) => Number(own));
}
