import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";

/** The process of the origins, as the benchmark holds it. */
export class Origins {
  readonly ports: readonly number[];
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, ports: readonly number[]) {
    this.#child = child;
    this.ports = ports;
  }

  static async start(): Promise<Origins> {
    const child = fork(new URL("./origin.ts", import.meta.url));
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
