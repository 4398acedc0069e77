import { describe, expect, it } from "vitest";
import { startFake } from "../support/fake-upstream.ts";
import { CHAT, exchange, RawClient } from "../support/http-client.ts";
import { startGateway } from "../support/test-gateway.ts";

/** What engines and other routers do for whoever asks. */
const CONTROLS = [
  "/flush_cache",
  "/reset_prefix_cache",
  "/reset_mm_cache",
  "/update_weights",
  "/update_weights_from_disk",
  "/load_lora_adapter",
  "/v1/load_lora_adapter",
  "/sleep",
  "/wake_up",
  "/start_profile",
  "/collective_rpc",
  "/abort_request",
  "/add_worker",
  "/remove_worker",
  "/slots",
  "/props",
  "/lora-adapters",
  "/api/pull",
  "/api/delete",
  "/api/create",
  "/metrics",
  "/debug",
  "/server_info",
  "/health",
];

/** The balancer's own, which belong to the other listener. */
const ADMIN = ["/healthz", "/livez", "/readyz", "/admin/endpoints", "/admin/explain", "/admin/reload", "/admin"];

describe("the public listener", () => {
  it.each([...CONTROLS, ...ADMIN])("does not know %s, with any method", async (path) => {
    const e1 = await startFake();
    const gateway = await startGateway([e1], { health: { intervalMs: 60_000 } });
    const probes = e1.probes.length;
    for (const method of ["GET", "POST", "PUT", "DELETE"]) {
      const answer = await exchange(`${gateway.listenUrl}${path}`, { method, body: method === "GET" ? "" : CHAT });
      expect(answer.status).toBe(404);
    }
    expect(e1.calls).toHaveLength(0);
    expect(e1.probes.slice(probes).filter((probed) => probed.startsWith(path))).toEqual([]);
  });

  it.each([
    "/v1/../flush_cache",
    "/v1/chat/completions/../../flush_cache",
    "//flush_cache",
    "/v1/chat/completions%2f..%2f..%2fflush_cache",
    "/v1/chat/completions/%2e%2e/flush_cache",
    "/v1/chat/completions;/flush_cache",
    "/V1/chat/completions",
    "/v1/chat/completions\\..\\flush_cache",
    "http://e1/flush_cache",
  ])("is not led to another path by %s", async (target) => {
    const e1 = await startFake();
    const gateway = await startGateway([e1]);
    const client = new RawClient(gateway.listenUrl).write(
      `POST ${target} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}`,
    );
    expect(await client.closes()).toMatch(/^HTTP\/1.1 (404|400) /);
    expect(e1.calls).toHaveLength(0);
  });
});
