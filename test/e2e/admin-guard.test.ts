import { describe, expect, it, onTestFinished } from "vitest";
import { callAdmin, endpointPath } from "../support/admin-client.ts";
import { keyHash } from "../support/client-key.ts";
import { startFake } from "../support/fake-upstream.ts";
import { RawClient } from "../support/http-client.ts";
import { startGateway, type TestGateway } from "../support/test-gateway.ts";

const PAGE = { origin: "http://evil.test", "sec-fetch-site": "cross-site" };
const AS_FORM = { "content-type": "text/plain" };

async function statusOf(gateway: TestGateway, host: string, path: string): Promise<string | undefined> {
  const client = new RawClient(gateway.admin);
  onTestFinished(() => void client.socket.destroy());
  client.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  return /^HTTP\/1.1 (\d+)/.exec(await client.closes())?.[1];
}

describe("an admin listener without keys", () => {
  it("lets no page of a browser change anything", async () => {
    const gateway = await startGateway([await startFake(), await startFake()]);
    const weigh = (headers: Readonly<Record<string, string>>): Promise<{ status: number; json: unknown }> =>
      callAdmin(gateway, "PATCH", endpointPath("e1"), { weight: 0.5 }, headers);
    for (const path of [`${endpointPath("e1")}/drain`, "/admin/reload"]) {
      expect(await callAdmin(gateway, "POST", path, undefined, PAGE)).toMatchObject({ status: 403 });
    }
    expect(await callAdmin(gateway, "DELETE", endpointPath("e1"), undefined, PAGE)).toMatchObject({ status: 403 });
    expect(await weigh(PAGE)).toMatchObject({ status: 403, json: { error: expect.stringContaining("adminKeys") } });
    expect(await weigh(AS_FORM)).toMatchObject({ status: 415 });
    expect(await callAdmin(gateway, "GET", endpointPath("e1"))).toMatchObject({
      json: { weight: 1, isDraining: false },
    });
    expect(await weigh({})).toMatchObject({ status: 200, json: { weight: 0.5 } });
  });

  it("knows only its own names, but for those who watch it", async () => {
    const gateway = await startGateway([await startFake()]);
    for (const path of ["/admin/endpoints", endpointPath("e1"), "/nowhere"]) {
      expect(await statusOf(gateway, "evil.test", path)).toBe("403");
    }
    for (const host of ["localhost:9", "10.0.0.1"])
      expect(await statusOf(gateway, host, "/admin/endpoints")).toBe("200");
    for (const path of ["/metrics", "/livez", "/readyz"]) {
      expect(await statusOf(gateway, "evenkeel.monitoring.svc:9090", path)).toBe("200");
    }
  });
});

describe("an admin listener with keys", () => {
  it("goes by the key alone, which no page has", async () => {
    const gateway = await startGateway([await startFake()], { adminKeys: [keyHash("op", "key")] });
    const withKey = { ...PAGE, ...AS_FORM, authorization: "Bearer key" };
    expect(await callAdmin(gateway, "PATCH", endpointPath("e1"), { weight: 2 }, withKey)).toMatchObject({
      status: 200,
    });
    for (const headers of [PAGE, {}]) {
      const answer = await callAdmin(gateway, "PATCH", endpointPath("e1"), { weight: 3 }, headers);
      expect(answer).toMatchObject({ status: 401 });
    }
    expect(await statusOf(gateway, "evil.test", "/admin/endpoints")).toBe("401");
  });
});
