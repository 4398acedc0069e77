import { type AddressInfo, createServer, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { ok, startFake } from "../support/fake-upstream.ts";
import { CHAT, exchange, send } from "../support/http-client.ts";
import { testEndpoint, testPool } from "../support/test-config.ts";
import { expectIdle, startGateway } from "../support/test-gateway.ts";

const PATH = "/v1/chat/completions";
const LARGE = { model: "m", messages: [{ role: "user", content: "x".repeat(8_000_000) }] };

/** Lists the model `m`; does to every other request, as soon as its first bytes are there, what it is told. */
async function startEager(act: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("data", (chunk) => {
      if (!chunk.toString("latin1").startsWith("GET /v1/models ")) {
        if (chunk.toString("latin1").startsWith("GET "))
          socket.end("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        else act(socket);
        return;
      }
      const body = JSON.stringify({ object: "list", data: [{ id: "m", object: "model" }] });
      socket.end(`HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const REFUSAL = '{"error":{"message":"too large"}}';
const answer = `HTTP/1.1 413 Content Too Large\r\nContent-Type: application/json\r\nContent-Length: ${REFUSAL.length}\r\n`;

describe("an engine that answers before it has read the request", () => {
  it.each([
    { what: "and reads on", act: (socket: Socket) => void socket.resume().write(`${answer}\r\n${REFUSAL}`) },
    {
      what: "and closes its side",
      act: (socket: Socket) => void socket.resume().end(`${answer}Connection: close\r\n\r\n${REFUSAL}`),
    },
  ])("$what has its answer passed on", async ({ act }) => {
    const gateway = await startGateway([await startEager(act)]);
    const got = await exchange(`${gateway.listenUrl}${PATH}`, { body: LARGE });
    expect(got).toMatchObject({ status: 413, text: REFUSAL, isWhole: true });
    expect(await gateway.outcomes()).toEqual({ upstream_4xx: 1 });
    await expectIdle(gateway);
  });

  it.each([
    { what: "closes at once", act: (socket: Socket) => void socket.destroy() },
    { what: "resets at once", act: (socket: Socket) => void socket.resetAndDestroy() },
    { what: "sends half a head and closes", act: (socket: Socket) => void socket.resume().end("HTTP/1.1 200 O") },
    {
      what: "sends a head alone and closes",
      act: (socket: Socket) => void socket.resume().end("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"),
    },
  ])("costs its client a 502 at most, and others nothing: it $what", async ({ act }) => {
    const other = await startFake(ok(), { models: ["other"] });
    const pools = [
      testPool([], { name: "a", models: ["m"], endpoints: [testEndpoint("e1", await startEager(act))] }),
      testPool([other.url], { name: "b", models: ["other"] }),
    ];
    const gateway = await startGateway([], { pools });
    const url = `${gateway.listenUrl}${PATH}`;
    const large = Array.from({ length: 3 }, () => send(url, { body: LARGE }));
    const small = await Promise.all(
      Array.from({ length: 20 }, () => exchange(url, { body: { ...CHAT, model: "other" } })),
    );
    expect(new Set(small.map(({ status }) => status))).toEqual(new Set([200]));
    for (const client of large) expect((await client.answer()).status).toBe(502);
    await expectIdle(gateway);
  });
});
