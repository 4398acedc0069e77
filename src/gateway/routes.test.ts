import { describe, expect, it } from "vitest";
import { findRoute, ROUTES } from "./routes.ts";

describe("findRoute", () => {
  it.each([
    ["/v1/chat/completions", "chat"],
    ["/v1/rerank", "rerank"],
    ["/rerank", "rerank"],
    ["/tokenize", "tokenize"],
  ])("knows %s as %s", (path, dialect) => {
    expect(findRoute(path)?.dialect).toBe(dialect);
  });

  it.each(["/v1/chat/completions/", "/v1/models", "/flush_cache", "constructor", ""])("does not know %j", (path) => {
    expect(findRoute(path)).toBeUndefined();
  });

  it("asks for usage only where tokens are generated", () => {
    for (const route of ROUTES.values()) expect(route.canAskUsage && !route.generates).toBe(false);
  });
});
