import { request } from "undici";
import { freePort } from "../../test/engines/harness/child.ts";
import { evenkeelCommand } from "./install.ts";
import { ManagedProcess } from "./managed-process.ts";

/** An engine that can be struck, in a process of its own. Its port stays over its deaths. */
export interface VictimEngine {
  readonly id: string;
  readonly url: string;
  /** Starts it, again if need be; resolves when it answers. */
  start(): Promise<void>;
  /** SIGKILL: its sockets go with it. */
  kill(): void;
  /** SIGTERM. */
  terminate(): void;
  /** SIGSTOP: it keeps its sockets and does nothing. */
  freeze(): void;
  thaw(): void;
  /** Misbehaves as these say from now on (docs/engine.md); none: behaves. Undefined: it cannot be told to. */
  readonly script?: (faults: readonly string[]) => Promise<void>;
  stop(): Promise<void>;
}

/** What the engines serve. */
export const VICTIM_MODEL = "chaos";

/** 1024 blocks each: what the balancer believes to be cached there is at its bound before anything is measured. */
const KV_TOKENS = "65536";
const START_TIMEOUT_MS = 30_000;

/**
 * Built-in engines e1, e2, ... not started yet. All give the same answers to the same questions.
 * @param speed Of an 8B model on an A100, whose step takes 12 ms.
 */
export async function victimEngines(count: number, speed: number, directory: string): Promise<VictimEngine[]> {
  const engines: VictimEngine[] = [];
  for (let i = 1; i <= count; i++) engines.push(new BuiltInEngine(`e${i}`, await freePort(), speed, directory));
  return engines;
}

class BuiltInEngine implements VictimEngine {
  readonly id: string;
  readonly url: string;
  readonly #port: number;
  readonly #speed: number;
  readonly #directory: string;
  #process: ManagedProcess | undefined;
  #starts = 0;

  constructor(id: string, port: number, speed: number, directory: string) {
    this.id = id;
    this.url = `http://127.0.0.1:${port}`;
    this.#port = port;
    this.#speed = speed;
    this.#directory = directory;
  }

  async start(): Promise<void> {
    const options = {
      "--listen": `127.0.0.1:${this.#port}`,
      "--model": VICTIM_MODEL,
      "--profile": "llama8b-a100",
      "--speed": String(this.#speed),
      "--kv-tokens": KV_TOKENS,
    };
    const command = evenkeelCommand("engine", ...Object.entries(options).flat(), "--allow-fault-control");
    const engine = new ManagedProcess(`${this.id}-${++this.#starts}`, command, this.#directory);
    this.#process = engine;
    await engine.waitUntil(() => isWell(`${this.url}/health`), START_TIMEOUT_MS);
  }

  kill(): void {
    this.#signal("SIGKILL");
  }

  terminate(): void {
    this.#signal("SIGTERM");
  }

  freeze(): void {
    this.#signal("SIGSTOP");
  }

  thaw(): void {
    this.#signal("SIGCONT");
  }

  readonly script = async (faults: readonly string[]): Promise<void> => {
    const { statusCode, body } = await request(`${this.url}/faults`, {
      method: "POST",
      body: JSON.stringify({ faults }),
      reset: true,
    });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`${this.id} did not take ${faults.join(", ")}: ${text}`);
  };

  async stop(): Promise<void> {
    await this.#process?.stop();
  }

  #signal(name: NodeJS.Signals): void {
    if (this.#process?.isRunning) process.kill(this.#process.pid, name);
  }
}

function isWell(url: string): Promise<boolean> {
  return request(url, { reset: true }).then(
    async ({ statusCode, body }) => {
      await body.dump();
      return statusCode === 200;
    },
    () => false,
  );
}
