import { describe, expect, it } from "vitest";
import type { HealthReading } from "./adapter.ts";
import { readHealthByMember, readHealthByStatus } from "./health-reading.ts";

describe("readHealthByStatus", () => {
  it.each<[number, string, HealthReading["kind"]]>([
    [200, "", "ok"],
    [200, '{"status":"ok"}', "ok"],
    [204, "", "ok"],
    [200, "<!doctype html><title>App</title>", "failed"],
    [200, "\n  <html>", "failed"],
    [301, "", "failed"],
    [401, '{"error":"Unauthorized"}', "auth_failed"],
    [403, "<html>Forbidden</html>", "auth_failed"],
    [404, "", "failed"],
    [429, "", "failed"],
    [500, "", "failed"],
    [503, "", "failed"],
    [503, '{"error":{"message":"Loading model","type":"unavailable_error","code":503}}', "loading"],
    [503, '{"status":"initializing"}', "loading"],
    [503, "overloading", "failed"],
    [500, "loading", "failed"],
  ])("%i with %j is %s", (status, body, expected) => {
    expect(readHealthByStatus(status, body).kind).toBe(expected);
  });

  it("names the status in its reason", () => {
    expect(readHealthByStatus(502, "secret detail")).toEqual({ kind: "failed", reason: "answered 502" });
  });
});

describe("readHealthByMember", () => {
  it.each<[number, string, HealthReading["kind"]]>([
    [200, '{"status":"ok"}', "ok"],
    [200, "OK", "failed"],
    [200, "[]", "failed"],
    [200, '{"state":"ok"}', "failed"],
    [503, '{"status":"loading model"}', "loading"],
    [401, '{"status":"ok"}', "auth_failed"],
  ])("%i with %j is %s", (status, body, expected) => {
    expect(readHealthByMember(status, body, "status").kind).toBe(expected);
  });
});
