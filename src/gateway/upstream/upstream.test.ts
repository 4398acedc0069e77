import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import type { Dispatcher } from "undici";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  DONE_EVENT,
  type FakeUpstream,
  headThenHold,
  ok,
  REFUSING_URL,
  startFake,
} from "../../../test/support/fake-upstream.ts";
import { testEndpoint } from "../../../test/support/test-config.ts";
import { until } from "../../../test/support/until.ts";
import { Upstream } from "./upstream.ts";

const surroundings = {
  timeouts: { connectMs: 1_000, upstreamKeepAliveMs: 60_000 },
  resolver: { resolve: async () => ["127.0.0.1"] },
  clock: { nowMs: () => performance.now() },
};

/** An exchange that is watched to its end. */
class Watched implements Dispatcher.DispatchHandler {
  text = "";
  isWhole = false;
  error: Error | undefined;
  controller: Dispatcher.DispatchController | undefined;
  /** Does so in the moment in which it is over. */
  onEnd: (() => void) | undefined;

  get isOver(): boolean {
    return this.isWhole || this.error !== undefined;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.text += chunk.toString();
  }

  onResponseEnd(): void {
    this.isWhole = true;
    this.onEnd?.();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.error = error;
  }
}

function upstreamOf({ url }: FakeUpstream, clock = surroundings.clock): Upstream {
  const upstream = new Upstream(testEndpoint("e1", url), { ...surroundings, clock });
  onTestFinished(() => upstream.close());
  return upstream;
}

function start(upstream: Upstream, connection: "any" | "fresh" = "any"): Watched {
  const handler = new Watched();
  upstream.send(
    { method: "POST", path: "/v1/chat/completions", headers: [], body: Buffer.from("{}") },
    connection,
    handler,
  );
  return handler;
}

async function send(upstream: Upstream): Promise<Watched> {
  const handler = start(upstream);
  await until(() => handler.isOver);
  return handler;
}

describe("Upstream", () => {
  it("uses a connection again, and says so", async () => {
    const fake = await startFake();
    const upstream = upstreamOf(fake);
    await send(upstream);
    await send(upstream);
    expect(fake.calls[1]?.socket).toBe(fake.calls[0]?.socket);
    expect(upstream.openConnections).toBe(1);
    start(upstream, "fresh");
    await fake.call(2);
    expect(fake.calls[2]?.socket).not.toBe(fake.calls[0]?.socket);
  });

  it("opens as many connections as there are requests", async () => {
    const fake = await startFake(headThenHold);
    const upstream = upstreamOf(fake);
    const handlers = Array.from({ length: 300 }, () => start(upstream));
    await until(() => fake.calls.length === 300);
    expect(upstream.openConnections).toBe(300);
    for (const { response } of fake.calls) response.end(DONE_EVENT);
    await until(() => handlers.every(({ isWhole }) => isWhole));
  });

  it("gives up a connection that has been used for long, but not what it carries", async () => {
    const fake = await startFake(headThenHold);
    let nowMs = 0;
    const upstream = upstreamOf(fake, { nowMs: () => nowMs });
    const stream = start(upstream);
    const call = await fake.call(0);
    fake.behave(ok());
    await send(upstream);
    expect(upstream.openConnections).toBe(2);
    nowMs = 299_000;
    await send(upstream);
    expect(fake.calls[2]?.socket).toBe(fake.calls[1]?.socket);
    nowMs = 300_000;
    await send(upstream);
    expect(fake.calls[3]?.socket).not.toBe(fake.calls[1]?.socket);
    call.response.end(DONE_EVENT);
    await until(() => stream.isWhole);
    await until(() => upstream.openConnections === 1);
  });

  it("makes new connections with new settings, and lets those of before finish", async () => {
    const [one, two] = [await startFake(headThenHold), await startFake()];
    const upstream = upstreamOf(one);
    const stream = start(upstream);
    const call = await one.call(0);
    upstream.reconfigure(testEndpoint("e1", one.url, { weight: 3 }), surroundings);
    one.next(ok());
    await send(upstream);
    expect(one.openSockets).toBe(2);
    upstream.reconfigure(testEndpoint("e1", two.url), surroundings);
    await until(() => one.openSockets === 1);
    await send(upstream);
    expect(two.calls).toHaveLength(1);
    call.response.end(DONE_EVENT);
    await until(() => stream.isWhole);
    await until(() => one.openSockets === 0);
  });

  it("is done when the last request is", async () => {
    const fake = await startFake(headThenHold);
    const upstream = upstreamOf(fake);
    const stream = start(upstream);
    const call = await fake.call(0);
    let isFinished = false;
    const finished = upstream.finish().then(() => {
      isFinished = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isFinished).toBe(false);
    call.response.end(DONE_EVENT);
    await finished;
    expect(stream.isWhole).toBe(true);
    await until(() => fake.openSockets === 0);
    expect(upstream.openConnections).toBe(0);
  });

  it("ends everything when it is closed, also what had to finish on connections of before", async () => {
    const [one, two] = [await startFake(headThenHold), await startFake(headThenHold)];
    const upstream = upstreamOf(one);
    const streams = [start(upstream)];
    await one.call(0);
    upstream.reconfigure(testEndpoint("e1", two.url), surroundings);
    streams.push(start(upstream));
    await two.call(0);
    await upstream.close();
    await until(() => streams.every(({ error }) => error !== undefined));
    await until(() => one.openSockets === 0 && two.openSockets === 0);
  });

  it("uses the connection first that was used last, so that the others run out", async () => {
    const fake = await startFake(headThenHold);
    const upstream = upstreamOf(fake);
    const handlers = [start(upstream), start(upstream), start(upstream)];
    await until(() => fake.calls.length === 3);
    for (const [i, { response }] of fake.calls.entries()) {
      response.end(DONE_EVENT);
      await until(() => handlers[i]?.isWhole === true);
    }
    fake.behave(ok());
    for (let i = 0; i < 3; i++) await send(upstream);
    const last = fake.calls[2]?.socket;
    expect(fake.calls.slice(3).map(({ socket }) => socket)).toEqual([last, last, last]);
  });

  it("sends a request that is due in the moment in which another is over", async () => {
    const fake = await startFake();
    const upstream = upstreamOf(fake);
    const first = start(upstream);
    let second: Watched | undefined;
    first.onEnd = () => {
      second = start(upstream);
    };
    await until(() => second?.isWhole === true);
    expect(fake.calls).toHaveLength(2);
  });

  it("sends it on another connection if the endpoint closes the one that it was given", async () => {
    const fake = await startFake((call) => call.response.writeHead(200, { connection: "close" }).end("{}"));
    const upstream = upstreamOf(fake);
    const first = start(upstream);
    let second: Watched | undefined;
    first.onEnd = () => {
      second = start(upstream);
    };
    await until(() => second?.isOver === true);
    expect(second?.isWhole).toBe(true);
    expect(fake.calls[1]?.socket).not.toBe(fake.calls[0]?.socket);
    await until(() => upstream.openConnections === 0);
    await upstream.finish();
  });

  it("is done when the last request has failed", async () => {
    const fake = await startFake(headThenHold);
    const upstream = upstreamOf(fake);
    const [broken, aborted] = [start(upstream), start(upstream)];
    const unsendable = new Watched();
    const headers = ["bad header", "1"];
    upstream.send({ method: "POST", path: "/", headers, body: Buffer.alloc(0) }, "any", unsendable);
    await until(() => unsendable.error !== undefined);
    const refused = upstreamOf({ ...fake, url: REFUSING_URL });
    const unconnected = start(refused);
    await until(() => unconnected.error !== undefined);
    await refused.finish();
    await until(() => fake.calls.length === 2);
    fake.calls[0]?.socket.destroy();
    await until(() => broken.isOver || aborted.isOver);
    for (const { controller } of [broken, aborted]) controller?.abort(new Error("over"));
    await upstream.finish();
    await until(() => fake.openSockets === 0);
  });

  it("gives up a request that nobody wants any more when its connection is there", async () => {
    const fake = await startFake();
    const upstream = upstreamOf(fake);
    const handler = new Watched();
    handler.onRequestStart = (controller) => controller.abort(new Error("over"));
    upstream.send({ method: "POST", path: "/", headers: [], body: Buffer.from("{}") }, "any", handler);
    await until(() => handler.error !== undefined);
    await upstream.finish();
    expect(fake.calls).toHaveLength(0);
    await until(() => fake.openSockets === 0);
  });
});

/** An endpoint that answers each request by hand, beyond what an HTTP server would do. */
async function rawEndpoint(answer: (socket: Socket) => void): Promise<Upstream> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    socket.on("data", () => answer(socket));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const upstream = new Upstream(
    testEndpoint("e1", `http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    surroundings,
  );
  onTestFinished(() => upstream.close());
  return upstream;
}

/** Waits at each piece of an answer until it is told to go on. */
class Slow extends Watched {
  override onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    super.onResponseData(controller, chunk);
    controller.pause();
  }
}

function startSlow(upstream: Upstream): Slow {
  const handler = new Slow();
  upstream.send({ method: "POST", path: "/", headers: [], body: Buffer.from("{}") }, "any", handler);
  return handler;
}

const longerThanANewsTravels = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 30));

describe("Upstream whose handler waits", () => {
  for (const [framing, head] of [
    ["by its end", ""],
    ["by its length", "content-length: 12\r\n"],
  ] as const) {
    it(`gives all of an answer that is framed ${framing} and whose connection closes meanwhile`, async () => {
      const upstream = await rawEndpoint(async (socket) => {
        socket.write(`HTTP/1.1 200 OK\r\nconnection: close\r\n${head}\r\nfirst `);
        await longerThanANewsTravels();
        socket.end("second");
      });
      const handler = startSlow(upstream);
      await until(() => handler.text === "first ");
      await longerThanANewsTravels();
      await longerThanANewsTravels();
      expect(handler.text).toBe("first ");
      handler.controller?.resume();
      await until(() => handler.text === "first second");
      handler.controller?.resume();
      await until(() => handler.isOver);
      expect(handler.isWhole).toBe(true);
      await upstream.finish();
    });

    it(`does not miss that the connection of one framed ${framing} was closed when it began to wait`, async () => {
      const upstream = await rawEndpoint((socket) => {
        socket.end(`HTTP/1.1 200 OK\r\nconnection: close\r\n${head}\r\nfirst second`);
      });
      const handler = startSlow(upstream);
      await until(() => handler.text !== "");
      await longerThanANewsTravels();
      handler.controller?.resume();
      await until(() => handler.isOver);
      expect(handler.text).toBe("first second");
      expect(handler.isWhole).toBe(true);
      await upstream.finish();
    });
  }

  it("tells of a connection that broke meanwhile once it goes on", async () => {
    const upstream = await rawEndpoint(async (socket) => {
      socket.write("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 12\r\n\r\nfirst ");
      await longerThanANewsTravels();
      socket.resetAndDestroy();
    });
    const handler = startSlow(upstream);
    await until(() => handler.text === "first ");
    await longerThanANewsTravels();
    await longerThanANewsTravels();
    handler.controller?.resume();
    await until(() => handler.isOver);
    expect(handler.isWhole).toBe(false);
    await upstream.finish();
  });

  it("uses the connection again for others than the one that waited", async () => {
    const upstream = await rawEndpoint((socket) => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody");
    });
    const waiting = startSlow(upstream);
    await until(() => waiting.text === "body");
    waiting.controller?.resume();
    const next = start(upstream);
    await until(() => next.isOver);
    expect(next.text).toBe("body");
    expect(upstream.openConnections).toBe(1);
  });

  it("does not end an answer whose handler waits, in whichever piece the end came", async () => {
    const fake = await startFake();
    for (const connection of ["any", "fresh"] as const) {
      const upstream = upstreamOf(fake);
      const [patient, gone] = [new Watched(), new Watched()];
      for (const handler of [patient, gone]) {
        const received = handler.onResponseData.bind(handler);
        handler.onResponseData = (controller, chunk) => {
          received(controller, chunk);
          handler.controller?.pause();
        };
        upstream.send({ method: "POST", path: "/", headers: [], body: Buffer.from("{}") }, connection, handler);
        await until(() => handler.text.endsWith("}"));
      }
      await new Promise((resolve) => setTimeout(resolve, 30));
      expect([patient.isWhole, gone.isWhole]).toEqual([false, false]);
      patient.controller?.resume();
      expect(patient.isWhole).toBe(true);
      gone.controller?.abort(new Error("over"));
      await upstream.finish();
      await until(() => upstream.openConnections === 0);
    }
  });
});
