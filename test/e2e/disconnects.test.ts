import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer } from "node:net";
import type * as Zlib from "node:zlib";
import { gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import {
  COMPLETION,
  code,
  finAt,
  headThenHold,
  hold,
  ok,
  REFUSING_URL,
  rstAt,
  startFake,
  tokenEvent,
} from "../support/fake-upstream.ts";
import { CHAT, exchange, RawClient, rawPost, STREAMED_CHAT, send } from "../support/http-client.ts";
import { testConfig } from "../support/test-config.ts";
import { expectIdle, runGateway, startGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";

/** Bodies that the balancer is about to decode: in here it does so when a test says, and not when it could. */
const heldDecodings = vi.hoisted((): (() => void)[] => []);
vi.mock("node:zlib", async (original) => {
  const zlib = await original<typeof Zlib>();
  const createGunzip = (): Zlib.Gunzip => {
    const decoder = zlib.createGunzip();
    const end = decoder.end.bind(decoder);
    const hold = (body: Buffer): Zlib.Gunzip => {
      heldDecodings.push(() => end(body));
      return decoder;
    };
    return Object.assign(decoder, { end: hold });
  };
  return { ...zlib, createGunzip };
});

describe.each([
  { kind: "streamed", body: STREAMED_CHAT },
  { kind: "whole", body: CHAT },
])("a client that leaves a $kind request", ({ body }) => {
  it("while it sends its body costs no endpoint anything", async () => {
    const e1 = await startFake();
    const gateway = await startGateway([e1]);
    const client = send(`${gateway.listenUrl}${PATH}`);
    client.request.write(JSON.stringify(body).slice(0, 10));
    await until(() => client.request.socket?.connecting === false && client.request.socket.bytesWritten > 0);
    client.abort();
    await until(async () => (await gateway.outcomes()).client_closed === 1);
    expect(e1.calls).toHaveLength(0);
    await expectIdle(gateway);
  });

  it("while the endpoint is being connected to gives its place back", async () => {
    const silent = createTcpServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void silent.close());
    const gateway = await runGateway(testConfig([`https://127.0.0.1:${(silent.address() as AddressInfo).port}`]));
    const client = send(`${gateway.listenUrl}${PATH}`, { body });
    const account = gateway.runtime.pools[0]?.balancer.members[0]?.account;
    await until(() => account?.requests === 1);
    client.abort();
    await expectIdle(gateway);
    expect(await gateway.outcomes()).toEqual({ client_closed: 1 });
  });

  it("while it waits for an answer stops the endpoint", async () => {
    const e1 = await startFake(hold);
    const gateway = await startGateway([e1]);
    const client = send(`${gateway.listenUrl}${PATH}`, { body });
    const call = await e1.call(0);
    client.abort();
    await until(() => call.isAborted);
    await expectIdle(gateway);
    expect(await gateway.outcomes()).toEqual({ client_closed: 1 });
    expect(e1.calls).toHaveLength(1);
  });

  it("in the middle of its answer stops the endpoint", async () => {
    const e1 = await startFake(headThenHold);
    const gateway = await startGateway([e1]);
    const client = send(`${gateway.listenUrl}${PATH}`, { body });
    const call = await e1.call(0);
    call.response.write(tokenEvent(0));
    await client.receives(tokenEvent(0));
    client.abort();
    await until(() => call.isAborted);
    await expectIdle(gateway);
    expect(await gateway.outcomes()).toEqual({ client_closed: 1 });
  });

  it("by a reset is noticed too", async () => {
    const e1 = await startFake(hold);
    const gateway = await startGateway([e1]);
    const client = new RawClient(gateway.listenUrl).write(rawPost(PATH, body));
    const call = await e1.call(0);
    client.socket.resetAndDestroy();
    await until(() => call.isAborted);
    await expectIdle(gateway);
  });

  it("is no reason to stop while it only waits for a slow answer", async () => {
    const e1 = await startFake((call) => void setTimeout(() => ok()(call), 150));
    const gateway = await startGateway([e1]);
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body })).toMatchObject({ status: 200, isWhole: true });
    expect(e1.calls[0]?.isAborted).toBe(false);
  });
});

describe("a client that leaves", () => {
  it("a silent stream after its head stops the endpoint", async () => {
    const e1 = await startFake(headThenHold);
    const gateway = await startGateway([e1]);
    const client = send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    await client.head();
    const call = await e1.call(0);
    client.abort();
    await until(() => call.isAborted);
    await expectIdle(gateway);
  });

  it("while its body is being decoded costs no endpoint anything", async () => {
    const e1 = await startFake(hold);
    const gateway = await startGateway([e1]);
    let gone: Promise<unknown> | undefined;
    const watch = (message: unknown): void => {
      gone ??= once((message as { readonly response: ServerResponse }).response, "close");
    };
    subscribe("http.server.request.start", watch);
    onTestFinished(() => void unsubscribe("http.server.request.start", watch));
    const client = send(`${gateway.listenUrl}${PATH}`, {
      body: gzipSync(JSON.stringify(CHAT)),
      headers: { "content-encoding": "gzip" },
    });
    await until(() => heldDecodings.length === 1);
    client.abort();
    await gone;
    for (const decode of heldDecodings) decode();
    await until(async () => (await gateway.outcomes()).client_closed === 1);
    expect(e1.calls).toHaveLength(0);
    await expectIdle(gateway);
  });

  it("a pipelined request while another is served frees both", async () => {
    const e1 = await startFake(hold);
    const gateway = await startGateway([e1]);
    const client = new RawClient(gateway.listenUrl).write(rawPost(PATH, CHAT) + rawPost(PATH, CHAT));
    const call = await e1.call(0);
    client.socket.destroy();
    await until(() => call.isAborted);
    await expectIdle(gateway);
    expect(e1.calls).toHaveLength(1);
  });

  it("does not disturb a connection that has been given back for others", async () => {
    const e1 = await startFake();
    const gateway = await startGateway([e1]);
    const first = new RawClient(gateway.listenUrl).write(rawPost(PATH, CHAT));
    await first.receives(/"finish_reason"/);
    e1.behave(hold);
    const second = send(`${gateway.listenUrl}${PATH}`, { body: CHAT });
    const call = await e1.call(1);
    first.socket.destroy();
    await first.closes();
    ok()(call);
    expect(await second.answer()).toMatchObject({ status: 200 });
  });
});

describe("a client that closes its sending side alone", () => {
  it("gets its whole answer", async () => {
    const e1 = await startFake(hold);
    const gateway = await startGateway([e1]);
    const client = new RawClient(gateway.listenUrl);
    client.socket.end(rawPost(PATH, CHAT));
    const call = await e1.call(0);
    // Long enough for everything that tells it from one that left.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(call.isAborted).toBe(false);
    ok()(call);
    const received = await client.closes();
    expect(received).toMatch(/^(HTTP\/1.1 100 Continue\r\n\r\n)+HTTP\/1.1 200 OK\r\n/);
    expect(received).toContain(JSON.stringify(COMPLETION));
    expect(await gateway.outcomes()).toEqual({ ok: 1 });
  });

  it("gets its whole stream, of which comments are no part", async () => {
    const e1 = await startFake(headThenHold);
    const gateway = await startGateway([e1]);
    const client = new RawClient(gateway.listenUrl);
    client.socket.end(rawPost(PATH, STREAMED_CHAT));
    const call = await e1.call(0);
    await client.receives(/\n:\n\n[\s\S]*\n:\n\n/);
    call.response.end(`${tokenEvent(0)}data: [DONE]\n\n`);
    expect(await client.closes()).toMatch(/data: \[DONE\]\n\n\r\n0\r\n\r\n$/);
    expect(await gateway.outcomes()).toEqual({ ok: 1 });
  });

  it("over HTTP/1.0 cannot be told from one that left", async () => {
    const e1 = await startFake(hold);
    const gateway = await startGateway([e1]);
    new RawClient(gateway.listenUrl).socket.end(rawPost(PATH, CHAT, { version: "1.0" }));
    const call = await e1.call(0);
    await until(() => call.isAborted);
    await expectIdle(gateway);
  });
});

describe("the ledger", () => {
  it("reads 0 everywhere after every way a request can end, fifty times each", async () => {
    const e1 = await startFake();
    const gateway = await startGateway([e1], { timeouts: { firstByteMs: 5_000 } });
    const url = `${gateway.listenUrl}${PATH}`;
    const members = gateway.runtime.pools[0]?.balancer.members ?? [];
    const isNegative = (): boolean =>
      members.some(({ account }) => Object.values(account).some((value) => typeof value === "number" && value < 0));
    for (const behaviour of [rstAt(3), finAt(3), code(500, "{}"), ok(), hold]) {
      e1.behave(behaviour);
      const begun = e1.calls.length;
      const clients = Array.from({ length: 50 }, (_, i) => send(url, { body: i % 2 === 0 ? CHAT : STREAMED_CHAT }));
      if (behaviour === hold) {
        await e1.call(begun + 49);
        for (const client of clients) client.abort();
      } else {
        await Promise.all(clients.map((client) => client.answer()));
      }
      expect(isNegative()).toBe(false);
    }
    await expectIdle(gateway);
    const outcomes = await gateway.outcomes();
    expect(Object.values(outcomes).reduce((sum, count) => sum + count)).toBe(250);
    expect(outcomes).toMatchObject({ client_closed: 50, upstream_5xx: 50, ok: 50, truncated: 100 });
  });

  it("reads 0 after refused connections", async () => {
    const gateway = await runGateway(testConfig([REFUSING_URL]));
    for (let i = 0; i < 20; i++) await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT });
    await expectIdle(gateway);
  });

  it("holds its place until the answer's end, not its head", async () => {
    const e1 = await startFake(headThenHold);
    const gateway = await startGateway([e1]);
    const client = send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    await client.head();
    const account = gateway.runtime.pools[0]?.balancer.members[0]?.account;
    expect(account?.requests).toBe(1);
    (await e1.call(0)).response.end(`${tokenEvent(0)}data: [DONE]\n\n`);
    await client.answer();
    expect(account?.requests).toBe(0);
  });

  it("survives clients that connect and leave without a word", async () => {
    const gateway = await startGateway([await startFake()]);
    const { hostname, port } = new URL(gateway.listenUrl);
    for (const last of ["", "GET", "POST /v1/chat/completions HTTP/1.1\r\nContent-Le", "\0\0\0", "\x16\x03\x01"]) {
      const socket = connect(Number(port), hostname);
      socket.on("error", () => {});
      await new Promise<void>((resolve) => socket.once("connect", resolve));
      if (last !== "") await new Promise<void>((resolve) => socket.write(last, () => resolve()));
      socket.resetAndDestroy();
    }
    expect(await exchange(`${gateway.listenUrl}${PATH}`, { body: CHAT })).toMatchObject({ status: 200 });
  });
});
