import { type ClientRequest, createServer, request as httpRequest, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished } from "vitest";
import { Watchdog } from "../watchdog.ts";
import { BufferBudget } from "./buffer-budget.ts";
import { type BodyLimits, MALFORMED_BODY, type ReceivedBody, receiveBody } from "./receive-body.ts";

/** Sends what `write` writes, and says what was received of it. */
async function received(
  limits: BodyLimits,
  headers: Record<string, string>,
  write: (client: ClientRequest) => void,
  onData: (request: IncomingMessage) => void = () => {},
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
    server.once("request", (request) => {
      resolve(receiveBody(request, limits, watchdog));
      request.once("data", () => onData(request));
    }),
  );
  const { port } = server.address() as AddressInfo;
  const client = httpRequest({ port, host: "127.0.0.1", method: "POST", headers });
  client.on("error", () => {});
  write(client);
  return body;
}

function limitsOf(limits: Partial<BodyLimits> = {}): BodyLimits {
  const share = new BufferBudget(() => 1_000_000).open();
  return { bytes: 1_000, arrivedAtMs: performance.now(), withinMs: undefined, share, ...limits };
}

const BODY_EVENTS = ["data", "end", "error", "close", MALFORMED_BODY];

describe("receiveBody", () => {
  it("puts together what comes in pieces", async () => {
    const body = await received(limitsOf(), {}, (client) => {
      client.write("one ");
      setTimeout(() => client.end("two"), 20);
    });
    expect(body).toEqual({ kind: "received", sent: Buffer.from("one two"), decoded: Buffer.from("one two") });
  });

  it("takes no body for an empty one", async () => {
    const body = await received(limitsOf(), { "content-encoding": "gzip", "content-length": "0" }, (client) =>
      client.end(),
    );
    expect(body).toEqual({ kind: "received", sent: Buffer.alloc(0), decoded: Buffer.alloc(0) });
  });

  it("gives up on one that is not whole by its deadline", async () => {
    const soon = limitsOf({ withinMs: 50 });
    expect(await received(soon, { "content-length": "10" }, (client) => client.write("never"))).toEqual({
      kind: "late",
    });
  });

  it.each([
    { what: "half a minute without a byte", arrivedMs: 31_000, sent: "", isLate: true },
    { what: "a byte each 3 ms, on the whole", arrivedMs: 31_000, sent: "x".repeat(330), isLate: true },
    { what: "more than a byte each 2 ms beyond that", arrivedMs: 31_000, sent: "x".repeat(2_000), isLate: false },
  ])("gives up on one that trickles: $what", async ({ arrivedMs, sent, isLate }) => {
    const long = limitsOf({ bytes: 10_000, arrivedAtMs: performance.now() - arrivedMs, withinMs: 300_000 });
    const body = await received(long, { "content-length": "2090" }, (client) => {
      client.write(sent);
      if (!isLate) setTimeout(() => client.end("x".repeat(90)), 300);
    });
    expect(body.kind).toBe(isLate ? "late" : "received");
  });

  it("gives up on one that the parser gave up", async () => {
    const body = await received(
      limitsOf(),
      { "content-length": "10" },
      (client) => client.write("half"),
      (request) => request.emit(MALFORMED_BODY),
    );
    expect(body).toEqual({ kind: "malformed" });
  });

  it("gives up on one that the budget has no room for, and leaves nothing of it there", async () => {
    const budget = new BufferBudget(() => 500);
    const share = budget.open();
    const body = await received(limitsOf({ share }), {}, (client) => client.write("x".repeat(600)));
    expect(body).toEqual({ kind: "too_much_buffered" });
    expect(budget.usedBytes).toBe(0);
  });

  it.each([
    { what: "received", headers: { "content-length": "4" }, sent: "body" },
    { what: "too_large", headers: { "transfer-encoding": "chunked" }, sent: "x".repeat(2_000) },
  ])("listens to a request no more when its body is $what, even if its client then leaves", async (row) => {
    const seen: IncomingMessage[] = [];
    const clients: ClientRequest[] = [];
    const body = await received(
      limitsOf(),
      row.headers,
      (client) => {
        clients.push(client);
        client.write(row.sent);
      },
      (request) => seen.push(request),
    );
    expect(body.kind).toBe(row.what);
    const [request] = seen;
    expect(BODY_EVENTS.map((name) => request?.listenerCount(name))).toEqual(BODY_EVENTS.map(() => 0));
    const closed = new Promise((resolve) => request?.socket.once("close", resolve));
    clients[0]?.destroy();
    request?.resume();
    await closed;
  });

  it("counts what it received, decoded too, until it is released", async () => {
    const budget = new BufferBudget(() => 2_000);
    const share = budget.open();
    const sent = gzipSync("x".repeat(900));
    const headers = { "content-encoding": "gzip", "content-length": String(sent.length) };
    const body = await received(limitsOf({ share }), headers, (client) => client.end(sent));
    expect(body).toEqual({ kind: "received", sent, decoded: Buffer.from("x".repeat(900)) });
    expect(budget.usedBytes).toBe(sent.length + 900);
    share.release();
    expect(budget.usedBytes).toBe(0);
  });

  it("stops decoding where the limit or the budget ends", async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    const headers = { "content-encoding": "gzip" };
    const large = limitsOf({ bytes: 100_000 });
    expect(await received(large, headers, (client) => client.end(bomb))).toEqual({ kind: "too_large" });
    const wide = limitsOf({ bytes: 100_000_000 });
    expect(await received(wide, headers, (client) => client.end(bomb))).toEqual({ kind: "too_much_buffered" });
    expect(large.share.bytes + wide.share.bytes).toBe(2 * bomb.length);
  });

  it.each([
    { coding: "gzip", whole: gzipSync("x") },
    { coding: "deflate", whole: deflateSync("x") },
    { coding: "br", whole: brotliCompressSync("x") },
  ])("says when a body is not $coding, or only half of it", async ({ coding, whole }) => {
    for (const sent of [Buffer.from("no such thing"), whole.subarray(0, -2)]) {
      const body = await received(limitsOf(), { "content-encoding": coding }, (client) => client.end(sent));
      expect(body).toEqual({ kind: "undecodable", cause: `The body is not valid ${coding}.` });
    }
  });

  it("gives up on one whose client leaves", async () => {
    const body = await received(limitsOf(), { "content-length": "10" }, (client) => {
      client.write("half");
      setTimeout(() => client.destroy(), 20);
    });
    expect(body).toEqual({ kind: "cut" });
  });

  it.each([
    { what: "says it is over the limit", headers: { "content-length": "1001" }, text: "" },
    { what: "is over the limit in chunks", headers: {}, text: "x".repeat(1_001) },
  ])("reads no more of one that $what", async ({ headers, text }) => {
    expect(
      await received(limitsOf(), headers as Record<string, string>, (client) => client.write(text || "x")),
    ).toEqual({
      kind: "too_large",
    });
  });
});
