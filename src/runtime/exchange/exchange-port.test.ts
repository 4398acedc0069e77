import { fork } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ipcPort } from "./exchange-port.ts";

describe("a channel between two processes", () => {
  it("carries bytes there and back, and tells when they are on their way", async () => {
    const folder = await mkdtemp(join(tmpdir(), "exchange-port-"));
    const file = join(folder, "echo.mjs");
    await writeFile(file, "process.on('message', (message) => process.send(message));");
    const child = fork(file, { serialization: "advanced" });
    try {
      const port = ipcPort(child);
      const heard = new Promise((resolve) => port.onMessage(resolve));
      await new Promise<void>((resolve) =>
        port.send({ exchange: "message", bytes: new Uint8Array([1, 2, 3]) }, resolve),
      );
      expect(await heard).toEqual({ exchange: "message", bytes: new Uint8Array([1, 2, 3]) });
      const exited = once(child, "exit");
      child.kill();
      await exited;
      // What cannot be sent any more is done with all the same.
      await new Promise<void>((resolve) => port.send("late", resolve));
    } finally {
      child.kill();
      await rm(folder, { recursive: true });
    }
  });

  it("that there is not takes whatever is sent", () => {
    let sent = 0;
    ipcPort(new EventEmitter()).send("anything", () => sent++);
    expect(sent).toBe(1);
  });

  it("is heard by one, until it is closed", () => {
    const peer = new EventEmitter();
    const port = ipcPort(peer);
    const heard: unknown[] = [];
    peer.emit("message", 1);
    port.onMessage((message) => heard.push(["first", message]));
    peer.emit("message", 2);
    port.onMessage((message) => heard.push(["second", message]));
    peer.emit("message", 3);
    port.close();
    peer.emit("message", 4);
    expect(heard).toEqual([
      ["first", 2],
      ["second", 3],
    ]);
    expect(peer.listenerCount("message")).toBe(0);
  });
});
