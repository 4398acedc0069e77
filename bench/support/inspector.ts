import { request, WebSocket } from "undici";

/** Memory of a process of Node, in bytes. */
export interface Memory {
  /** Objects that are reachable: measured after a forced collection. */
  readonly heapBytes: number;
  /** Buffers outside the heap. */
  readonly externalBytes: number;
}

interface Reply {
  readonly id: number;
  readonly result?: Readonly<Record<string, number>> & { readonly result?: { readonly value?: unknown } };
  readonly error?: { readonly message: string };
}

/**
 * A look into a process that was started with `--inspect=127.0.0.1:PORT`: the program itself needs nothing for it, so
 * what is measured is what users run.
 */
export class Inspector {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, { resolve(reply: Reply): void; reject(error: Error): void }>();
  #last = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => {
      const reply = JSON.parse(String(data)) as Reply;
      this.#waiting.get(reply.id)?.resolve(reply);
      this.#waiting.delete(reply.id);
    });
    socket.addEventListener("close", () => {
      for (const { reject } of this.#waiting.values()) reject(new Error("the inspected process closed its inspector"));
    });
  }

  /** @throws when nobody can be inspected there. */
  static async connect(port: number): Promise<Inspector> {
    const { body } = await request(`http://127.0.0.1:${port}/json/list`);
    const [target] = (await body.json()) as readonly { readonly webSocketDebuggerUrl: string }[];
    const socket = new WebSocket(target?.webSocketDebuggerUrl ?? "");
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener("open", () => resolve());
      socket.addEventListener("error", () => reject(new Error(`no inspector at port ${port}`)));
    });
    return new Inspector(socket);
  }

  /** Collects all garbage first. Twice: what a finaliser lets go of in the first is free in the second. */
  async memory(): Promise<Memory> {
    await this.#send("HeapProfiler.collectGarbage");
    await this.#send("HeapProfiler.collectGarbage");
    const { usedSize = Number.NaN } = await this.#send("Runtime.getHeapUsage");
    return { heapBytes: usedSize, externalBytes: Number(await this.evaluate("process.memoryUsage().external")) };
  }

  /** @returns the value of an expression, as JSON has it. @throws when it throws. */
  async evaluate(expression: string): Promise<unknown> {
    const { result } = await this.#send("Runtime.evaluate", { expression, returnByValue: true });
    return (result as { readonly value?: unknown } | undefined)?.value;
  }

  close(): void {
    this.#socket.close();
  }

  async #send(method: string, params: object = {}): Promise<NonNullable<Reply["result"]>> {
    const id = ++this.#last;
    const reply = await new Promise<Reply>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#socket.send(JSON.stringify({ id, method, params }));
    });
    if (reply.error !== undefined) throw new Error(`${method}: ${reply.error.message}`);
    return reply.result ?? {};
  }
}
