import { describe, expect, it } from "vitest";
import type { HealthReading } from "../adapter.ts";
import { lmdeploy } from "./lmdeploy.ts";

describe("LMDeploy", () => {
  it.each<[number, string, HealthReading["kind"]]>([
    [200, '{"status":"healthy"}', "ok"],
    [200, '{"status":"sleeping"}', "loading"],
    [503, '{"status":"initializing"}', "loading"],
    [503, '{"status":"unhealthy"}', "failed"],
    [200, '{"status":"unhealthy"}', "failed"],
    [401, '{"status":"sleeping"}', "auth_failed"],
  ])("health: %i with %s is %s", (status, body, expected) => {
    expect(lmdeploy.readHealth(status, body).kind).toBe(expected);
  });

  it("knows the queue of a version that counts only the engine's", () => {
    expect(lmdeploy.readSignals("lmdeploy:num_requests_waiting 2", 0).waitingRequests).toBe(2);
    expect(lmdeploy.readSignals("lmdeploy:num_api_requests_waiting 2", 0).waitingRequests).toBeUndefined();
  });
});
