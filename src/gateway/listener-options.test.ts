import { describe, expect, it } from "vitest";
import { testConfig } from "../../test/support/test-config.ts";
import { timersOf } from "./listener-options.ts";

describe("timersOf", () => {
  it("gives Node the configured times, and bodies that nobody reads a minute more than those that are wanted", () => {
    const timeouts = { keepAliveMs: 75_000, clientHeadMs: 40_000, clientBodyMs: 100_000 };
    expect(timersOf(testConfig([], { timeouts }))).toEqual({
      keepAliveTimeout: 75_000,
      headersTimeout: 40_000,
      requestTimeout: 200_000,
      connectionsCheckingInterval: 5_000,
    });
  });

  it("turns each off that is off", () => {
    const timeouts = { keepAliveMs: undefined, clientHeadMs: undefined, clientBodyMs: undefined };
    const off = { keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0 };
    expect(timersOf(testConfig([], { timeouts }))).toMatchObject(off);
  });

  it("looks for late clients soon where they have little time", () => {
    expect(timersOf(testConfig([], { timeouts: { clientHeadMs: 400 } }))).toMatchObject({
      connectionsCheckingInterval: 100,
    });
  });
});
