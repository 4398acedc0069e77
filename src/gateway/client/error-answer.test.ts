import { describe, expect, it } from "vitest";
import { errorBody, errorEvent } from "./error-answer.ts";
import { ERRORS, type ErrorCode } from "./errors.ts";

const codes = Object.keys(ERRORS) as ErrorCode[];
const json = (body: Buffer): unknown => JSON.parse(body.toString());

describe("errorBody", () => {
  it("has the OpenAI shape with all four keys", () => {
    const answer = errorBody("chat", "model_not_found", { model: "gpt-9", knownModels: ["a", "b"] });
    expect(answer.status).toBe(404);
    expect(json(answer.body)).toEqual({
      error: {
        message: 'The model "gpt-9" is not served here. Known models: a, b.',
        type: "invalid_request_error",
        param: null,
        code: "model_not_found",
      },
    });
  });

  it("has Anthropic's shape on its route", () => {
    const answer = errorBody("messages", "overloaded", { requestId: "req_1" });
    expect(json(answer.body)).toEqual({
      type: "error",
      error: { type: "overloaded_error", message: "All endpoints are at their limit." },
      request_id: "req_1",
    });
  });

  it.each(codes)("says something whole for %s without any detail", (code) => {
    const { body, headers } = errorBody(undefined, code);
    expect((json(body) as { error: { message: string } }).error.message).toMatch(/^[A-Z].*\.$/);
    expect(headers["content-length"]).toBe(String(body.length));
  });

  it("tells SDKs not to repeat what cannot succeed", () => {
    expect(errorBody("chat", "invalid_json").headers["x-should-retry"]).toBe("false");
    expect(errorBody("chat", "overloaded").headers["x-should-retry"]).toBeUndefined();
  });

  it.each([
    [1, "1"],
    [1001, "2"],
    [600_000, "60"],
  ])("turns a wait of %d ms into a retry-after of %s s", (retryAfterMs, seconds) => {
    expect(errorBody("chat", "overloaded", { retryAfterMs }).headers["retry-after"]).toBe(seconds);
  });

  it("names the methods that are allowed", () => {
    const { headers, body } = errorBody("chat", "method_not_allowed", { path: "/v1/models", allowedMethods: ["GET"] });
    expect(headers.allow).toBe("GET");
    expect(body.toString()).toContain("/v1/models takes GET only.");
  });

  it("counts bytes, not characters", () => {
    const { headers, body } = errorBody("chat", "model_not_found", { model: "größer" });
    expect(headers["content-length"]).toBe(String(body.length));
    expect(body.length).toBeGreaterThan(body.toString().length);
  });

  it("lists some of very many models", () => {
    const knownModels = Array.from({ length: 100 }, (_, i) => `m${i}`);
    expect(errorBody("chat", "model_not_found", { knownModels }).body.toString()).toContain("m19 and 80 more.");
  });

  it("closes the connection whose body was left unread", () => {
    expect(errorBody("chat", "request_too_large", { limitBytes: 10 }).headers.connection).toBe("close");
  });
});

describe("errorEvent", () => {
  const cause = "The endpoint broke off.";

  it.each([
    [
      "chat",
      /^data: (.*)\n\n$/,
      { error: { message: cause, type: "server_error", param: null, code: "upstream_error" } },
    ],
    [
      "responses",
      /^event: error\ndata: (.*)\n\n$/,
      { type: "error", code: "upstream_error", message: cause, param: null, sequence_number: 0 },
    ],
    [
      "messages",
      /^event: error\ndata: (.*)\n\n$/,
      { type: "error", error: { type: "api_error", message: cause }, request_id: null },
    ],
  ] as const)("is one event of %s", (dialect, frame, data) => {
    const text = errorEvent(dialect, "upstream_error", { cause }).toString();
    expect(text).toMatch(frame);
    expect(JSON.parse(frame.exec(text)?.[1] ?? "")).toEqual(data);
  });

  it("stays one event whatever the cause says", () => {
    const text = errorEvent("chat", "upstream_error", { cause: "a\n\ndata: b" }).toString();
    expect(text.split("\n\n")).toHaveLength(2);
  });
});
