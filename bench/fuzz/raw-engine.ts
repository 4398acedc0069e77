import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { cutAt } from "./edits.ts";

/** What is written to whoever asks, and what then becomes of the connection. */
export interface RawAnswer {
  readonly bytes: Buffer;
  /** Where it is cut into writes. */
  readonly cuts: readonly number[];
  readonly ending: "end" | "reset" | "silence";
}

const HEAD_END = Buffer.from("\r\n\r\n");
const NO_MODELS = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 27\r\n\r\n";

/** A server that knows just enough HTTP to see where a request ends, and then writes what it was told to. */
export class RawEngine {
  readonly url: string;
  answer: RawAnswer = { bytes: Buffer.alloc(0), cuts: [], ending: "end" };
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("connection", (socket) => this.#serve(socket));
  }

  static async start(): Promise<RawEngine> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, resolve));
    return new RawEngine(server);
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    let received = Buffer.alloc(0);
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("data", (chunk) => {
      received = Buffer.concat([received, chunk]);
      if (!isComplete(received)) return;
      const isProbe = received.subarray(0, 4).toString() === "GET ";
      received = Buffer.alloc(0);
      if (isProbe) socket.end(`${NO_MODELS}{"object":"list","data":[]}`);
      else write(socket, this.answer);
    });
  }
}

function isComplete(received: Buffer): boolean {
  const headEnd = received.indexOf(HEAD_END);
  if (headEnd === -1) return false;
  const length = /content-length: (\d+)/i.exec(received.toString("latin1", 0, headEnd))?.[1] ?? "0";
  return received.length >= headEnd + HEAD_END.length + Number(length);
}

function write(socket: Socket, { bytes, cuts, ending }: RawAnswer): void {
  for (const piece of cutAt(bytes, cuts)) socket.write(piece);
  if (ending === "end") socket.end();
  // What was written is to arrive first.
  else if (ending === "reset") setImmediate(() => socket.resetAndDestroy());
}
