import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { until } from "../../../test/support/until.ts";
import { LeanSocket } from "./lean-socket.ts";

/** A connection and its other end. */
async function connected(): Promise<{ readonly socket: LeanSocket; readonly peer: Socket }> {
  const server = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = new LeanSocket();
  const [[peer]] = await Promise.all([
    once(server, "connection") as Promise<[Socket]>,
    once(socket.connect((server.address() as AddressInfo).port, "127.0.0.1"), "connect"),
  ]);
  onTestFinished(() => {
    peer.destroy();
    socket.destroy();
    server.close();
  });
  return { socket, peer };
}

/** Reads as undici does: all there is, at every `readable`, until it is told to wait. */
class Reader {
  readonly chunks: Buffer[] = [];
  isPaused = false;
  readonly #socket: LeanSocket;

  constructor(socket: LeanSocket) {
    this.#socket = socket;
    socket.on("readable", () => this.read());
  }

  get text(): string {
    return Buffer.concat(this.chunks).toString();
  }

  read(): void {
    while (!this.isPaused) {
      const chunk = this.#socket.read();
      if (chunk === null) return;
      this.chunks.push(chunk);
    }
  }
}

describe("LeanSocket", () => {
  it("hands on what comes, each piece as bytes of its own", async () => {
    const { socket, peer } = await connected();
    const reader = new Reader(socket);
    for (const text of ["one ", "two ", "three"]) {
      peer.write(text);
      await until(() => reader.text.endsWith(text));
    }
    expect(reader.text).toBe("one two three");
  });

  it("takes no more from its peer than it was asked for", async () => {
    const { socket, peer } = await connected();
    const reader = new Reader(socket);
    reader.isPaused = true;
    const sent = Buffer.alloc(32 * 1024 * 1024, "x");
    peer.write(sent);
    await until(() => socket.bytesRead > 0);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(socket.bytesRead).toBeLessThanOrEqual(64 * 1024);
    reader.isPaused = false;
    reader.read();
    await until(() => socket.bytesRead === sent.length);
    expect(Buffer.concat(reader.chunks).equals(sent)).toBe(true);
  });

  it("ends after its last byte was taken, however late", async () => {
    const { socket, peer } = await connected();
    const reader = new Reader(socket);
    reader.isPaused = true;
    let hasEnded = false;
    socket.on("end", () => {
      hasEnded = true;
    });
    peer.end("last words");
    await until(() => socket.bytesRead > 0);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(hasEnded).toBe(false);
    reader.isPaused = false;
    reader.read();
    await until(() => hasEnded);
    expect(reader.text).toBe("last words");
  });

  it("gives what was put back before what came after it", async () => {
    const { socket, peer } = await connected();
    const reader = new Reader(socket);
    peer.write("abcdef");
    await until(() => reader.chunks.length === 1);
    reader.isPaused = true;
    socket.unshift(Buffer.from("def"));
    reader.chunks[0] = Buffer.from("abc");
    peer.write("ghi");
    await new Promise((resolve) => setTimeout(resolve, 50));
    reader.isPaused = false;
    reader.read();
    await until(() => reader.text.length === 9);
    expect(reader.text).toBe("abcdefghi");
  });

  it("tells of a connection that broke", async () => {
    const { socket, peer } = await connected();
    new Reader(socket);
    const failed = once(socket, "error");
    peer.resetAndDestroy();
    expect((await failed)[0]).toMatchObject({ code: "ECONNRESET" });
  });
});
