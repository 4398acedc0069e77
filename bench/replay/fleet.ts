import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { request } from "undici";
import { freePorts } from "../support/free-port.ts";
import { evenkeelCommand } from "../support/install.ts";
import { ManagedProcess } from "../support/managed-process.ts";
import { MODEL } from "./client.ts";

/**
 * Speeds of the four engines, relative to the profile. At speed 1 the profile bears 3.4 of the trace's requests per
 * second (1,170 prompt and 250 output tokens on the mean) with 80 ms per token; these four bear 6.9 together, and
 * the trace brings 4.9 on the mean and 5.9 in its busiest minute: 72 and 86 %.
 */
export const SPEEDS: readonly number[] = [0.65, 0.55, 0.45, 0.35];

/** Steps of 30 ms and more: long against the clock of a compressed replay. */
export const PROFILE = "llama70b-tp4-a100";

const START_TIMEOUT_MS = 20_000;

/** One engine of the fleet. */
export interface FleetEngine {
  /** As the balancer names it. */
  readonly id: string;
  /** Without the compression of time. */
  readonly speed: number;
}

/** Four engines and the balancer in front of them, each in its own process. */
export class Fleet {
  readonly origin: string;
  readonly engines: readonly FleetEngine[];
  readonly #processes: readonly ManagedProcess[];

  private constructor(origin: string, engines: readonly FleetEngine[], processes: readonly ManagedProcess[]) {
    this.origin = origin;
    this.engines = engines;
    this.#processes = processes;
  }

  /** @param speedup By how much time is compressed: engines are that much faster. */
  static async start(policy: string, speedup: number, scratch: string): Promise<Fleet> {
    const directory = join(scratch, policy);
    await mkdir(directory, { recursive: true });
    const [port = 0, adminPort = 0, ...enginePorts] = await freePorts(2 + SPEEDS.length);
    const engines = SPEEDS.map((speed, index) => ({ id: `127.0.0.1:${enginePorts[index]}`, speed }));
    const processes: ManagedProcess[] = [];
    try {
      for (const engine of engines) processes.push(startEngine(engine, speedup, directory));
      await Promise.all(processes.map((process, i) => untilOk(process, `http://${engines[i]?.id}/health`)));
      const balancer = startBalancer({ policy, port, adminPort, engines }, directory);
      processes.push(balancer);
      await untilOk(balancer, `http://127.0.0.1:${adminPort}/readyz`);
    } catch (error) {
      await Promise.all(processes.map((process) => process.stop()));
      throw error;
    }
    return new Fleet(`http://127.0.0.1:${port}`, engines, processes);
  }

  /** The processes by name. */
  get processes(): readonly { readonly name: string; readonly pid: number }[] {
    return this.#processes;
  }

  /** @throws when a process has ended. */
  assertRunning(): void {
    for (const process of this.#processes) process.assertRunning();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.stop()));
  }
}

function startEngine({ id, speed }: FleetEngine, speedup: number, directory: string): ManagedProcess {
  const options = ["--listen", id, "--model", MODEL, "--profile", PROFILE, "--speed", String(speed * speedup)];
  return new ManagedProcess(`engine x${speed}`, evenkeelCommand("engine", ...options), directory);
}

interface BalancerSite {
  readonly policy: string;
  readonly port: number;
  readonly adminPort: number;
  readonly engines: readonly FleetEngine[];
}

function startBalancer({ policy, port, adminPort, engines }: BalancerSite, directory: string): ManagedProcess {
  const listeners = ["--listen", `127.0.0.1:${port}`, "--admin", `127.0.0.1:${adminPort}`];
  const endpoints = engines.flatMap(({ id }) => ["--endpoint", `http://${id}`]);
  const command = evenkeelCommand("serve", ...listeners, ...endpoints, "--policy", policy);
  return new ManagedProcess("balancer", command, directory);
}

function untilOk(process: ManagedProcess, url: string): Promise<void> {
  const isOk = (): Promise<boolean> =>
    request(url).then(
      async ({ statusCode, body }) => {
        await body.dump();
        return statusCode === 200;
      },
      () => false,
    );
  return process.waitUntil(isOk, START_TIMEOUT_MS);
}
