import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { beforeAll, expect, it, onTestFinished } from "vitest";
import { exchange } from "../../support/http-client.ts";
import { llamaChat, startEndlessStream } from "../harness/chat.ts";
import { chatTextOf } from "../harness/events.ts";
import { LlamaServer } from "../harness/llama-server.ts";
import { Serve } from "../harness/serve.ts";

let engine: LlamaServer;

beforeAll(async () => {
  [engine] = (await LlamaServer.startSeveral(1, { slots: 2 })) as [LlamaServer];
  return () => engine.kill();
});

async function serveInFrontOf(url: string, flags: readonly string[]): Promise<Serve> {
  const serve = await Serve.start([url], flags);
  onTestFinished(() => serve.stop());
  return serve;
}

it("serves all of twelve times more requests than there are slots, and holds those that have none", async () => {
  const serve = await serveInFrontOf(engine.url, []);
  await expect.poll(async () => (await serve.endpoint(engine.url)).signals?.maxRunningRequests).toBe(2);
  const answers = await Promise.all(
    Array.from({ length: 24 }, (_, i) =>
      exchange(`${serve.url}/v1/chat/completions`, { body: { ...llamaChat(40), stream: i % 2 === 0 } }),
    ),
  );
  expect(answers.map(({ status, isWhole }) => [status, isWhole])).toEqual(Array(24).fill([200, true]));
  expect(await serve.outcomes("ok")).toBe(24);
  expect(await serve.metric("holds_total")).toBeGreaterThanOrEqual(22);
  expect(serve.log).not.toContain("endpoint is down");
  await expect.poll(() => serve.openWork()).toBe(0);
});

/** The engine behind a front that can keep `/health` waiting, as an engine out of HTTP threads does. */
async function startStarvableFront(): Promise<{ url: string; starve(): void; heldProbes(): number }> {
  let isStarved = false;
  let held = 0;
  const front = createServer((incoming, outgoing) => {
    if (isStarved && incoming.url === "/health") {
      held += 1;
      return;
    }
    const { method, headers, url } = incoming;
    const onward = request(`${engine.url}${url}`, { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => onward.destroy());
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    front.close();
    front.closeAllConnections();
  });
  return {
    url: `http://127.0.0.1:${(front.address() as AddressInfo).port}`,
    starve: () => {
      isStarved = true;
    },
    heldProbes: () => held,
  };
}

it("does not take time-outs of probes for death while tokens flow, and does once they stop", async () => {
  const front = await startStarvableFront();
  const flags = ["--health-interval", "500ms", "--health-timeout", "300ms", "--health-unhealthy-after", "1"];
  const serve = await serveInFrontOf(front.url, flags);
  const stream = await startEndlessStream(serve.url);
  const logBefore = serve.log;
  front.starve();
  await expect.poll(front.heldProbes).toBeGreaterThanOrEqual(2);
  expect(serve.log.slice(logBefore.length)).not.toContain("endpoint is down");
  expect(await serve.availability(front.url)).toBe("ready");
  expect(chatTextOf(stream.text)).not.toBe("");
  stream.abort();
  await expect.poll(() => serve.availability(front.url)).toBe("down");
});
