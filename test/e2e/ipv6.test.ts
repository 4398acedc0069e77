import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { pino } from "pino";
import { describe, expect, it, onTestFinished } from "vitest";
import { startServer } from "../../src/gateway/index.ts";
import { COMPLETION } from "../support/fake-upstream.ts";
import { CHAT, exchange } from "../support/http-client.ts";
import { testConfig, testEndpoint } from "../support/test-config.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";
const hasIpv6 = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ address }) => address === "::1"),
);

describe.skipIf(!hasIpv6)("an endpoint and a listener at IPv6 addresses", () => {
  it("serve, are probed, and keep their brackets in names, labels and logs", async () => {
    const hosts = new Set<string | undefined>();
    const engine = createServer((request, response) => {
      hosts.add(request.headers.host);
      request.resume();
      const models = { object: "list", data: [{ id: "m", object: "model" }] };
      const body = request.method === "POST" ? COMPLETION : models;
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
    });
    await new Promise<void>((resolve) => engine.listen(0, "::1", resolve));
    onTestFinished(() => {
      engine.closeAllConnections();
      engine.close();
    });
    const authority = `[::1]:${(engine.address() as AddressInfo).port}`;
    const endpoints = [testEndpoint(authority, `http://${authority}`)];
    const lines: string[] = [];
    const log = pino({ level: "debug" }, { write: (line: string) => void lines.push(line) });
    const listen = { host: "::1", port: 0 };
    const server = await startServer(testConfig([], { listen, pool: { endpoints } }), { log });
    onTestFinished(() => server.close());
    await until(() => server.runtime.isReady && server.runtime.directory.names.length > 0);
    expect(server.listenUrl).toMatch(/^http:\/\/\[::1\]:\d+$/);
    const answer = await exchange(`${server.listenUrl}${PATH}`, { body: CHAT });
    expect(answer).toMatchObject({ status: 200, headers: { "x-evenkeel-endpoint": authority } });
    expect(hosts).toEqual(new Set([authority]));
    const metrics = await (await fetch(`${server.adminUrl}/metrics`)).text();
    expect(metrics).toContain(`evenkeel_endpoint_up{pool="default",endpoint="${authority}"} 1`);
    await until(() => lines.some((line) => line.includes('"request ended"')));
    expect(lines.some((line) => line.includes(`"endpoint":"${authority}"`))).toBe(true);
  });
});
