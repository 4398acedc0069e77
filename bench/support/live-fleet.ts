import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { request } from "undici";
import type { EngineSpec } from "../../src/sim/index.ts";
import { freePorts } from "./free-port.ts";
import { evenkeelCommand } from "./install.ts";
import { ManagedProcess } from "./managed-process.ts";

/** How a balancer chooses. */
export interface PolicyChoice {
  readonly name: string;
  /** The policy's own; what is left out has its default. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** What is started. */
export interface LiveFleetPlan {
  readonly engines: readonly EngineSpec[];
  readonly policy: PolicyChoice;
  /** By how much time is compressed: engines are that much faster. */
  readonly speedup: number;
  /** Folder in which the run has one of its own for its files. */
  readonly scratch: string;
}

const MODEL = "bench";
const START_TIMEOUT_MS = 60_000;

/** Built-in engines and the balancer in front of them, each in its own process. */
export class LiveFleet {
  readonly origin: string;
  /** What the engines serve. */
  readonly model = MODEL;
  readonly #engineOrigins: readonly string[];
  readonly #processes: readonly ManagedProcess[];

  private constructor(origin: string, engineOrigins: readonly string[], processes: readonly ManagedProcess[]) {
    this.origin = origin;
    this.#engineOrigins = engineOrigins;
    this.#processes = processes;
  }

  /** Resolves when all are ready. */
  static async start(plan: LiveFleetPlan): Promise<LiveFleet> {
    const { engines } = plan;
    const [port = 0, adminPort = 0, ...enginePorts] = await freePorts(2 + engines.length);
    const addresses = enginePorts.map((enginePort) => `127.0.0.1:${enginePort}`);
    const urls = addresses.map((address) => `http://${address}`);
    const directory = await mkdtemp(join(plan.scratch, "fleet-"));
    const processes = engines.map((engine, i) => startEngine(engine, addresses[i] as string, plan.speedup, directory));
    try {
      await Promise.all(processes.map((engine, i) => untilOk(engine, `${urls[i]}/health`)));
      const balancer = await startBalancer({ ...plan, urls, port, adminPort }, directory);
      processes.push(balancer);
      await untilOk(balancer, `http://127.0.0.1:${adminPort}/readyz`);
    } catch (error) {
      await Promise.all(processes.map((process) => process.stop()));
      throw error;
    }
    return new LiveFleet(`http://127.0.0.1:${port}`, urls, processes);
  }

  /** The processes by name. */
  get processes(): readonly { readonly name: string; readonly pid: number }[] {
    return this.#processes;
  }

  /** @throws when a process has ended. */
  assertRunning(): void {
    for (const process of this.#processes) process.assertRunning();
  }

  /** Requests that engines threw out of a running batch for lack of KV, since the start. */
  async preemptions(): Promise<number> {
    const counts = await Promise.all(this.#engineOrigins.map(preemptionsOf));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.stop()));
  }
}

function startEngine(
  { id, profile, speed }: EngineSpec,
  address: string,
  speedup: number,
  directory: string,
): ManagedProcess {
  const options = {
    "--listen": address,
    "--model": MODEL,
    "--profile": profile.name,
    "--kv-tokens": String(profile.kvTokens),
    "--speed": String(speed * speedup),
  };
  return new ManagedProcess(`engine ${id}`, evenkeelCommand("engine", ...Object.entries(options).flat()), directory);
}

interface BalancerSite extends LiveFleetPlan {
  /** Of the engines, in their order. */
  readonly urls: readonly string[];
  readonly port: number;
  readonly adminPort: number;
}

async function startBalancer(site: BalancerSite, directory: string): Promise<ManagedProcess> {
  const { engines, policy, urls, port, adminPort } = site;
  const config = {
    listen: `127.0.0.1:${port}`,
    admin: `127.0.0.1:${adminPort}`,
    policy: { name: policy.name, ...policy.options },
    endpoints: engines.map(({ id }, i) => ({ id, url: urls[i] })),
  };
  // JSON is YAML.
  const file = join(directory, "evenkeel.yaml");
  await writeFile(file, JSON.stringify(config));
  return new ManagedProcess("balancer", evenkeelCommand("serve", "--config", file), directory);
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

async function preemptionsOf(origin: string): Promise<number> {
  const { body } = await request(`${origin}/metrics`);
  const [, count] = /^vllm:num_preemptions_total\{[^}]*\} (\d+)$/m.exec(await body.text()) ?? [];
  if (count === undefined) throw new Error(`${origin}/metrics does not count preemptions`);
  return Number(count);
}
