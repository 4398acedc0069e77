import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { request } from "undici";
import { freePorts } from "../support/free-port.ts";
import { type Command, ManagedProcess } from "../support/managed-process.ts";
import { treeUsage } from "../support/process-tree.ts";
import type { Delivered } from "./load.ts";
import type { Peer } from "./peer.ts";
import { PATH, requestBody } from "./workload.ts";

const START_TIMEOUT_MS = 20_000;

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
  readonly #process: ManagedProcess;

  private constructor(name: string, port: number, process: ManagedProcess) {
    this.name = name;
    this.port = port;
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
    const command = adapt(await peer.prepare({ port, adminPort, originPorts, directory }));
    const process = new ManagedProcess(peer.name, command, directory);
    try {
      await process.waitUntil(() => answers(port), START_TIMEOUT_MS);
    } catch (error) {
      await process.stop();
      throw error;
    }
    return new Contender(peer.name, port, process);
  }

  /** Puts a load on it. @throws when the load did not come through whole. */
  async measure(load: (port: number) => Promise<Delivered>): Promise<PhaseCost> {
    const before = treeUsage(this.#process.pid);
    const { count, seconds, problems } = await load(this.port);
    this.#process.assertRunning();
    const after = treeUsage(this.#process.pid);
    if (problems.length > 0) throw new Error(problems.join(", "));
    return {
      units: count,
      cpuUsPerUnit: ((after.cpuMs - before.cpuMs) * 1000) / count,
      unitsPerSecond: count / seconds,
    };
  }

  residentBytes(): number {
    return treeUsage(this.#process.pid).residentBytes;
  }

  stop(): Promise<void> {
    return this.#process.stop();
  }
}

function answers(port: number): Promise<boolean> {
  return request(`http://127.0.0.1:${port}${PATH}`, {
    method: "POST",
    headers: { "content-type": "application/json", connection: "close" },
    body: requestBody(false),
  }).then(
    async ({ statusCode, body }) => {
      await body.dump();
      return statusCode === 200;
    },
    () => false,
  );
}
