import { describe, expect, it } from "vitest";
import { blameOfError, blameOfStatus, retryAfterOf } from "./failure.ts";

describe("blameOfStatus", () => {
  it.each([
    { statuses: [429, 503], blame: "busy" },
    { statuses: [500, 502, 504], blame: "failed" },
    { statuses: [400, 401, 403, 404, 405, 408, 409, 413, 422, 431, 501, 505], blame: "client" },
  ])("of $statuses is $blame", ({ statuses, blame }) => {
    for (const status of statuses) expect(blameOfStatus(status)).toBe(blame);
  });
});

describe("blameOfError", () => {
  it.each([
    { engine: "vLLM, dead", code: 500, message: "EngineCore encountered an issue.", blame: "failed" },
    { engine: "SGLang, queue full", code: 503, message: "The request queue is full.", blame: "busy" },
    { engine: "llama.cpp, prompt too long", code: 400, message: "the request exceeds", blame: "client" },
    { engine: "a status in words", code: "503", message: undefined, blame: "busy" },
    { engine: "Anthropic's API", code: "overloaded_error", message: "Overloaded", blame: "busy" },
    { engine: "OpenAI's API", code: "rate_limit_exceeded", message: undefined, blame: "busy" },
    { engine: "OpenAI's API", code: "server_error", message: undefined, blame: "failed" },
    { engine: "OpenAI's API", code: "context_length_exceeded", message: undefined, blame: "client" },
    { engine: "Anthropic's API", code: "invalid_request_error", message: undefined, blame: "client" },
    { engine: "older vLLM, by type", code: "BadRequestError", message: undefined, blame: "client" },
    { engine: "older vLLM, by type", code: "InternalServerError", message: undefined, blame: "failed" },
    { engine: "another evenkeel", code: "upstream_timeout", message: undefined, blame: "failed" },
    { engine: "vLLM, giving up", code: "abort", message: undefined, blame: "failed" },
    { engine: "TGI, text alone", code: undefined, message: "Model is overloaded", blame: "busy" },
    { engine: "text alone", code: undefined, message: "Input validation error", blame: undefined },
    { engine: "nothing", code: undefined, message: undefined, blame: undefined },
    { engine: "a code that says nothing", code: "E17", message: "overloaded", blame: undefined },
    { engine: "a number that is no status", code: 7, message: undefined, blame: undefined },
  ])("of $engine with $code is $blame", ({ code, message, blame }) => {
    expect(blameOfError({ code, message })).toBe(blame);
  });
});

describe("retryAfterOf", () => {
  it.each([
    { value: undefined, ms: undefined },
    { value: "0", ms: 0 },
    { value: "2", ms: 2_000 },
    { value: "1.5", ms: 1_500 },
    { value: "soon", ms: undefined },
    { value: "-3", ms: undefined },
    { value: "Thu, 01 Jan 1970 00:00:00 GMT", ms: 0 },
  ])("reads $value as $ms", ({ value, ms }) => {
    expect(retryAfterOf(value)).toBe(ms);
  });

  it("reads a date as the time until then", () => {
    const ms = retryAfterOf(new Date(Date.now() + 60_000).toUTCString());
    expect(ms).toBeGreaterThan(55_000);
    expect(ms).toBeLessThanOrEqual(60_000);
  });
});
