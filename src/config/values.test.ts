import { describe, expect, it } from "vitest";
import type { z } from "zod";
import { byteSize } from "./byte-size.ts";
import { duration, durationOrOff } from "./duration.ts";
import { endpointUrl } from "./endpoint-url.ts";
import { formatListenAddress, listenAddress } from "./listen-address.ts";
import { passthroughPath } from "./passthrough-path.ts";
import { sessionKeySource } from "./session-key-source.ts";

const read = (schema: z.ZodType, text: unknown): unknown => {
  const parsed = schema.safeParse(text);
  return parsed.success ? parsed.data : "refused";
};

describe("a duration", () => {
  it.each([
    ["250ms", 250],
    ["30s", 30_000],
    ["1.5s", 1500],
    ["10m", 600_000],
    ["2h", 7_200_000],
    ["596h", 2_145_600_000],
    ["597h", "refused"],
    ["0s", "refused"],
    ["10", "refused"],
    [10, "refused"],
    ["-1s", "refused"],
    ["1 s", "refused"],
    ["1d", "refused"],
    ["off", "refused"],
  ])("reads %j as %j", (text, ms) => expect(read(duration, text)).toBe(ms));

  it("is no limit when it may be off and is", () => expect(read(durationOrOff, "off")).toBeUndefined());
  it("is a length of time when it may be off and is not", () => expect(read(durationOrOff, "5s")).toBe(5000));
});

describe("a size", () => {
  it.each([
    ["64MiB", 67_108_864],
    ["10MB", 10_000_000],
    ["1.5KiB", 1536],
    ["65536", 65_536],
    [65_536, 65_536],
    ["0", "refused"],
    [-1, "refused"],
    [1.5, "refused"],
    ["64M", "refused"],
    ["64mib", "refused"],
    ["9999999999GiB", "refused"],
  ])("reads %j as %j", (text, bytes) => expect(read(byteSize, text)).toBe(bytes));
});

describe("an address to listen on", () => {
  it.each([
    ["127.0.0.1:8080", "127.0.0.1", 8080],
    ["localhost:0", "localhost", 0],
    ["[::1]:8080", "::1", 8080],
    ["[::]:443", "::", 443],
  ])("reads %s", (text, host, port) => {
    expect(listenAddress.parse(text)).toEqual({ host, port });
    expect(formatListenAddress({ host, port })).toBe(text);
  });

  it.each([
    "8080",
    ":8080",
    "::1:8080",
    "[127.0.0.1]:80",
    "[zz]:80",
    "300.1.1.1:80",
    "host:65536",
    "host",
    "host:8080/x",
  ])("refuses %s", (text) => expect(read(listenAddress, text)).toBe("refused"));
});

describe("the URL of an endpoint", () => {
  it.each([
    ["http://10.0.0.7:8000", "http://10.0.0.7:8000", "10.0.0.7:8000"],
    ["10.0.0.7:8000", "http://10.0.0.7:8000", "10.0.0.7:8000"],
    ["localhost:8000/", "http://localhost:8000", "localhost:8000"],
    ["https://llm.example", "https://llm.example", "llm.example:443"],
    ["http://LLM.example:80/", "http://llm.example", "llm.example:80"],
    ["http://[::1]:8000", "http://[::1]:8000", "[::1]:8000"],
    ["[::1]:8000", "http://[::1]:8000", "[::1]:8000"],
    ["http://h:1/llama/", "http://h:1/llama", "h:1/llama"],
  ])("reads %s", (text, url, id) => expect(endpointUrl.parse(text)).toEqual({ url, id }));

  it.each([
    ["gpu-1", "or host:port"],
    ["::1", "IPv6 address in brackets"],
    ["::1:8000", "IPv6 address in brackets"],
    ["http://::1", "a URL such as"],
    ["http://[fe80::1%25eth0]:8000", "a URL such as"],
    ["http://h:1@x", "without user name and password"],
    ["h:1@x:80", "without user name and password"],
    ["ftp://h:1", "http:// or https://"],
    ["unix:///run/engine.sock", "http:// or https://"],
    ["http://h:99999", "a URL such as"],
    ["http://h:0", "a port from 1"],
    ["http://h:1/?key=abc", "without query"],
    ["http://h:1/v1", "without /v1"],
    ["http://h:1/v1/", "without /v1"],
    ["", "or host:port"],
  ])("refuses %j and says why", (text, reason) => {
    const parsed = endpointUrl.safeParse(text);
    expect(parsed.success).toBe(false);
    expect(parsed.error?.issues[0]?.message).toContain(reason);
  });
});

describe("a path that is passed through", () => {
  it.each(["/v1/audio/transcriptions", "/classify", "/v1/images/edits"])("may be %s", (path) => {
    expect(read(passthroughPath, path)).toBe(path);
  });

  it.each([
    "/sleep",
    "/wake_up",
    "/flush_cache",
    "/metrics",
    "/v1/load_lora_adapter",
    "/Metrics",
    "/slots/0",
    "/api/pull",
    "/server_info",
    "/%6detrics",
    "/v1/../metrics",
    "/v1/audio/",
    "//metrics",
    "/",
    "v1/audio",
    "/v1/audio?x=1",
  ])("may not be %s", (path) => expect(read(passthroughPath, path)).toBe("refused"));
});

describe("a source of session keys", () => {
  it.each([
    ["header:X-Session-Id", "header:x-session-id"],
    ["body:metadata.user_id", "body:metadata.user_id"],
    ["header:authorization", "refused"],
    ["header:Cookie", "refused"],
    ["header:", "refused"],
    ["header:a b", "refused"],
    ["body:", "refused"],
    ["body:a..b", "refused"],
    ["cookie:x", "refused"],
    ["x-session-id", "refused"],
  ])("reads %s as %s", (text, source) => expect(read(sessionKeySource, text)).toBe(source));
});
