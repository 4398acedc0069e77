import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { RawClient } from "../../../test/support/http-client.ts";
import { until } from "../../../test/support/until.ts";
import { ClientStream } from "./client-stream.ts";

/** Asks a server for something. @returns its side of the answer, and the client's, which reads nothing before it is told to. */
async function open(): Promise<{ response: ServerResponse; client: RawClient }> {
  const server = createServer();
  const response = new Promise<ServerResponse>((resolve) => server.once("request", (_, answer) => resolve(answer)));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close().closeAllConnections());
  const client = new RawClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(() => void client.socket.destroy());
  client.socket.pause();
  client.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  return { response: await response, client };
}

/** Writes more than the connection takes, and ends. */
async function endWithRest(response: ServerResponse): Promise<ClientStream> {
  const stream = new ClientStream(response, () => false);
  stream.begin({ status: 200, headers: [], isStream: true, bodyBytes: undefined });
  do {
    stream.write(Buffer.alloc(64 * 1024));
    await new Promise((resolve) => setTimeout(resolve, 1));
  } while (!stream.isBehind);
  stream.end();
  return stream;
}

describe("the rest of an answer that has ended", () => {
  it("is not kept for a client that never takes it", async () => {
    const { response, client } = await open();
    (await endWithRest(response)).dropIfStalled(50);
    await until(() => response.closed);
    client.socket.resume();
    expect(await client.closes()).not.toMatch(/0\r\n\r\n$/);
  });

  it("is sent to one that goes on taking it", async () => {
    const { response, client } = await open();
    (await endWithRest(response)).dropIfStalled(1_000);
    client.socket.resume();
    await until(() => response.closed);
    await client.receives(/0\r\n\r\n$/);
  });
});
