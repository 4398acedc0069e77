import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";

/** What the origins are to be like. */
export interface OriginOptions {
  /** How many there are, each on a port of its own. */
  readonly count: number;
  /** Whether streams fall silent after their first event, and stay open. */
  readonly isSilent: boolean;
}

const DEFAULTS: OriginOptions = { count: 3, isSilent: false };

/** The process of the origins, as the benchmark holds it. */
export class Origins {
  readonly ports: readonly number[];
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, ports: readonly number[]) {
    this.#child = child;
    this.ports = ports;
  }

  static async start(options: Partial<OriginOptions> = {}): Promise<Origins> {
    const child = fork(new URL("./origin.ts", import.meta.url), [JSON.stringify({ ...DEFAULTS, ...options })]);
    const [ports] = await once(child, "message");
    return new Origins(child, ports as number[]);
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  /** Chat requests that each origin has served so far. */
  async served(): Promise<readonly number[]> {
    this.#child.send("served");
    const [counts] = await once(this.#child, "message");
    return counts as number[];
  }

  stop(): void {
    if (this.#child.connected) this.#child.disconnect();
  }
}
