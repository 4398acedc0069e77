import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { request } from "undici";
import { freePorts } from "../support/free-port.ts";
import { type Command, ManagedProcess } from "../support/managed-process.ts";
import { cpuMsBetween, type TreeUsage, treeUsage } from "../support/process-tree.ts";
import type { Delivered } from "./load.ts";
import type { ClientSettings, Peer } from "./peer.ts";
import { PATH, requestBody, WORKLOAD } from "./workload.ts";

/** The slowest takes a quarter of it on an idle machine. */
const START_TIMEOUT_MS = 60_000;
/** A request to a peer that has just begun to listen can be lost. */
const ANSWER_TIMEOUT_MS = 5_000;

/** A peer rests when it uses less than `REST_SHARE` of a core for so long. */
const REST_MS = 100;
const REST_SHARE = 0.05;
/** Whoever does not rest for so long never does: what it does then is not left over from the load. */
const MOST_LEFTOVER_MS = 3_000;

/** What one phase of one round cost. */
export interface PhaseCost {
  /** Answers or events. */
  readonly units: number;
  readonly cpuUsPerUnit: number;
  readonly unitsPerSecond: number;
}

/** A peer that runs. */
export class Contender {
  readonly name: string;
  readonly port: number;
  /** What to tell the clients of its loads. */
  readonly client: ClientSettings;
  readonly #process: ManagedProcess;

  private constructor(name: string, port: number, client: ClientSettings, process: ManagedProcess) {
    this.name = name;
    this.port = port;
    this.client = client;
    this.#process = process;
  }

  /**
   * Starts a peer and waits until it answers a chat request.
   * @param adapt Changes the command before it is run.
   */
  static async start(
    peer: Peer,
    originPorts: readonly number[],
    scratch: string,
    adapt: (command: Command) => Command = (command) => command,
  ): Promise<Contender> {
    const [port = 0, adminPort = 0] = await freePorts(2);
    const directory = join(scratch, peer.name);
    await mkdir(directory, { recursive: true });
    const site = { port, adminPort, originPorts, directory };
    const { connections, streams } = WORKLOAD;
    const client = { connections, streams, headers: peer.headers?.(site) ?? {}, ...peer.client };
    const process = new ManagedProcess(peer.name, adapt(await peer.prepare(site)), directory);
    try {
      await process.waitUntil(() => answers(port, client), START_TIMEOUT_MS);
    } catch (error) {
      await process.stop();
      throw error;
    }
    return new Contender(peer.name, port, client, process);
  }

  /**
   * Puts a load on it, and returns when it rests again: what the load leaves it to do is counted, and does not fall
   * into whatever is measured next. @throws when the load did not come through whole.
   */
  async measure(load: (port: number) => Promise<Delivered>): Promise<PhaseCost> {
    const before = this.usage();
    const { count, seconds, problems } = await load(this.port);
    this.#process.assertRunning();
    const after = await this.#rested();
    if (problems.length > 0) throw new Error(problems.join(", "));
    return {
      units: count,
      cpuUsPerUnit: (cpuMsBetween(before, after) * 1000) / count,
      unitsPerSecond: count / seconds,
    };
  }

  get isRunning(): boolean {
    return this.#process.isRunning;
  }

  /** What it has used so far. @throws when it has ended. */
  usage(): TreeUsage {
    return treeUsage(this.#process.pid);
  }

  residentBytes(): number {
    return this.usage().residentBytes;
  }

  stop(): Promise<void> {
    return this.#process.stop();
  }

  /** @returns what it had used when it began to rest, or now when it does not. */
  async #rested(): Promise<TreeUsage> {
    const first = this.usage();
    let last = first;
    for (let waitedMs = 0; waitedMs < MOST_LEFTOVER_MS; waitedMs += REST_MS) {
      await new Promise((resolve) => setTimeout(resolve, REST_MS));
      const now = this.usage();
      if (cpuMsBetween(last, now) < REST_SHARE * REST_MS) return last;
      last = now;
    }
    return first;
  }
}

function answers(port: number, { headers }: ClientSettings): Promise<boolean> {
  return request(`http://127.0.0.1:${port}${PATH}`, {
    method: "POST",
    headers: { "content-type": "application/json", connection: "close", ...headers },
    body: requestBody(false),
    signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
  }).then(
    async ({ statusCode, body }) => {
      await body.dump();
      return statusCode === 200;
    },
    () => false,
  );
}
