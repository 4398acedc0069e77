import { type ClientRequest, createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { Watchdog } from "../watchdog.ts";
import { type BodyLimits, type ReceivedBody, receiveBody } from "./receive-body.ts";

/** Sends what `write` writes, and says what was received of it. */
async function received(
  limits: BodyLimits,
  headers: Record<string, string>,
  write: (client: ClientRequest) => void,
): Promise<ReceivedBody> {
  const watchdog = new Watchdog({ nowMs: () => performance.now() });
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    watchdog.close();
    server.closeAllConnections();
    server.close();
  });
  const body = new Promise<ReceivedBody>((resolve) =>
    server.once("request", (request) => resolve(receiveBody(request, limits, watchdog))),
  );
  const { port } = server.address() as AddressInfo;
  const client = httpRequest({ port, host: "127.0.0.1", method: "POST", headers });
  client.on("error", () => {});
  write(client);
  return body;
}

const limits = { bytes: 1_000, deadlineMs: Number.POSITIVE_INFINITY };

describe("receiveBody", () => {
  it("puts together what comes in pieces", async () => {
    const body = await received(limits, {}, (client) => {
      client.write("one ");
      setTimeout(() => client.end("two"), 20);
    });
    expect(body).toEqual({ kind: "received", sent: Buffer.from("one two"), decoded: Buffer.from("one two") });
  });

  it("takes no body for an empty one", async () => {
    const body = await received(limits, { "content-encoding": "gzip", "content-length": "0" }, (client) =>
      client.end(),
    );
    expect(body).toEqual({ kind: "received", sent: Buffer.alloc(0), decoded: Buffer.alloc(0) });
  });

  it("gives up on one that is not whole by its deadline", async () => {
    const soon = { ...limits, deadlineMs: performance.now() + 50 };
    expect(await received(soon, { "content-length": "10" }, (client) => client.write("never"))).toEqual({
      kind: "late",
    });
  });

  it("gives up on one whose client leaves", async () => {
    const body = await received(limits, { "content-length": "10" }, (client) => {
      client.write("half");
      setTimeout(() => client.destroy(), 20);
    });
    expect(body).toEqual({ kind: "cut" });
  });

  it.each([
    { what: "says it is over the limit", headers: { "content-length": "1001" }, text: "" },
    { what: "is over the limit in chunks", headers: {}, text: "x".repeat(1_001) },
  ])("reads no more of one that $what", async ({ headers, text }) => {
    expect(await received(limits, headers as Record<string, string>, (client) => client.write(text || "x"))).toEqual({
      kind: "too_large",
    });
  });
});
