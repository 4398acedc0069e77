import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { request } from "undici";
import { parseSamples, type Sample, sumOf } from "../../test/support/metric-samples.ts";
import { freePorts } from "./free-port.ts";
import { Inspector, type Memory } from "./inspector.ts";
import { evenkeelCommand } from "./install.ts";
import { ManagedProcess } from "./managed-process.ts";
import { treeUsage } from "./process-tree.ts";

/** What a balancer holds open for requests; nothing of it is left when all of them are over. */
export interface OpenWork {
  /** Over all pools. */
  readonly heldRequests: number;
  /** Every number of every endpoint's ledger that is not 0, as `endpoint.number`. */
  readonly leases: Readonly<Record<string, number>>;
  /** Requests that have arrived and not ended. */
  readonly inFlight: number;
}

/** What a process takes of the machine. */
export interface Footprint extends Memory {
  readonly residentBytes: number;
  readonly sockets: number;
}

/** A line of its log, as far as it is looked at. */
export interface LogLine {
  /** 50 and more: an error. */
  readonly level: number;
  readonly msg: string;
  readonly requestId?: string;
  readonly endpoint?: string;
}

const NAME = "balancer";
const CONFIG_FILE = "evenkeel.yaml";
const START_TIMEOUT_MS = 30_000;
const SOCKET_LOOKS = 10;
const SOCKET_LOOK_MS = 50;

/** `evenkeel serve` in a process of its own, with a configuration file that can change, and a way to look inside. */
export class ServedBalancer {
  readonly origin: string;
  readonly #admin: string;
  readonly #directory: string;
  readonly #process: ManagedProcess;
  readonly #ports: BalancerPorts;

  private constructor(process: ManagedProcess, directory: string, ports: BalancerPorts) {
    this.origin = `http://127.0.0.1:${ports.listen}`;
    this.#admin = `http://127.0.0.1:${ports.admin}`;
    this.#directory = directory;
    this.#process = process;
    this.#ports = ports;
  }

  /** Resolves when it is ready. @param config All but the addresses. */
  static async start(config: object, directory: string): Promise<ServedBalancer> {
    const [listen = 0, admin = 0, inspector = 0] = await freePorts(3);
    const ports = { listen, admin, inspector };
    // JSON is YAML.
    await writeFile(join(directory, CONFIG_FILE), configText(config, ports));
    const { file, args } = evenkeelCommand("serve", "--config", join(directory, CONFIG_FILE));
    const command = { file, args: [`--inspect=127.0.0.1:${inspector}`, ...args] };
    const balancer = new ServedBalancer(new ManagedProcess(NAME, command, directory), directory, ports);
    await balancer.#process.waitUntil(() => balancer.#isReady(), START_TIMEOUT_MS);
    return balancer;
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** Undefined: it runs; else the end of what it wrote. */
  get lastWords(): string | undefined {
    return this.#process.isRunning ? undefined : this.#process.lastLines();
  }

  /** Writes the file anew and tells the process. */
  async reconfigure(config: object): Promise<void> {
    await writeFile(join(this.#directory, CONFIG_FILE), configText(config, this.#ports));
    process.kill(this.pid, "SIGHUP");
  }

  /** Requests that ended, by outcome. */
  async outcomes(): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { name, labels, value } of await this.#samples()) {
      if (name !== "evenkeel_requests_total") continue;
      const outcome = labels.outcome ?? "";
      counts[outcome] = (counts[outcome] ?? 0) + value;
    }
    return counts;
  }

  async openWork(): Promise<OpenWork> {
    const { pools } = (await this.#get("/admin/endpoints").then((body) => body.json())) as {
      readonly pools: readonly PoolReport[];
    };
    const leases: Record<string, number> = {};
    for (const { endpoints } of pools) {
      for (const { id, work } of endpoints) {
        for (const [name, value] of Object.entries(work)) if (value !== 0) leases[`${id}.${name}`] = value;
      }
    }
    const heldRequests = pools.reduce((sum, pool) => sum + pool.heldRequests, 0);
    return { heldRequests, leases, inFlight: sumOf(await this.#samples(), "evenkeel_requests_in_flight") };
  }

  /** Memory is measured after a forced collection. */
  async footprint(): Promise<Footprint> {
    // Before the inspector's own connection is one of them.
    const sockets = await this.#steadySockets();
    const memory = await this.inspect((inspector) => inspector.memory());
    return { ...memory, residentBytes: treeUsage(this.pid).residentBytes, sockets };
  }

  async inspect<Value>(look: (inspector: Inspector) => Promise<Value>): Promise<Value> {
    const inspector = await Inspector.connect(this.#ports.inspector);
    try {
      return await look(inspector);
    } finally {
      inspector.close();
    }
  }

  /** Open sockets of the process, listeners included. */
  sockets(): number {
    const folder = `/proc/${this.pid}/fd`;
    return readdirSync(folder).filter((name) => isSocket(join(folder, name))).length;
  }

  /** What it logged so far; it is to log JSON. Lines that are none are left out. */
  log(): LogLine[] {
    const text = readFileSync(join(this.#directory, `${NAME}.log`), "utf8");
    return text.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line) as LogLine] : []));
  }

  /** Those that are open all the time: probes open one each now and then. */
  async #steadySockets(): Promise<number> {
    let fewest = this.sockets();
    for (let look = 1; look < SOCKET_LOOKS; look++) {
      await new Promise((resolve) => setTimeout(resolve, SOCKET_LOOK_MS));
      fewest = Math.min(fewest, this.sockets());
    }
    return fewest;
  }

  stop(): Promise<void> {
    return this.#process.stop();
  }

  async #samples(): Promise<readonly Sample[]> {
    return parseSamples(await (await this.#get("/metrics")).text());
  }

  #isReady(): Promise<boolean> {
    return request(`${this.#admin}/readyz`).then(
      async ({ statusCode, body }) => {
        await body.dump();
        return statusCode === 200;
      },
      () => false,
    );
  }

  async #get(path: string): Promise<Awaited<ReturnType<typeof request>>["body"]> {
    // A connection that is kept would count as a socket of the process.
    const { body } = await request(`${this.#admin}${path}`, { reset: true });
    return body;
  }
}

interface BalancerPorts {
  readonly listen: number;
  readonly admin: number;
  readonly inspector: number;
}

interface PoolReport {
  readonly heldRequests: number;
  readonly endpoints: readonly { readonly id: string; readonly work: Readonly<Record<string, number>> }[];
}

function configText(config: object, { listen, admin }: BalancerPorts): string {
  return JSON.stringify({ listen: `127.0.0.1:${listen}`, admin: `127.0.0.1:${admin}`, ...config });
}

/** False for one that has just been closed. */
function isSocket(descriptor: string): boolean {
  try {
    return readlinkSync(descriptor).startsWith("socket:");
  } catch {
    return false;
  }
}
