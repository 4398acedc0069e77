import { describe, expect, it } from "vitest";
import { DEFAULT_OUTPUT_TOKENS, requestProfile } from "./request.ts";

describe("requestProfile", () => {
  it("fills in a streaming request of ordinary length with nothing to match", () => {
    const profile = requestProfile({ promptTokens: 10 });
    expect(profile).toMatchObject({ model: "", route: "", promptTokens: 10, isStreaming: true });
    expect(profile.prefix).toBeUndefined();
    expect(profile.sessionKey).toBeUndefined();
    expect(profile.output.meanTokens).toBe(DEFAULT_OUTPUT_TOKENS);
  });

  it.each([
    [undefined, 16, 16],
    [500, 16, 16],
    [500, undefined, 500],
    [16, 500, 16],
    [0, 500, 0],
  ])("expecting %s tokens under a bound of %s it expects %d", (expected, bound, mean) => {
    const profile = requestProfile({
      promptTokens: 10_000,
      ...(expected !== undefined && { expectedOutputTokens: expected }),
      maxOutputTokens: bound,
    });
    expect(profile.output.meanTokens).toBe(mean);
  });

  it("takes an expectation as it is given", () => {
    const output = { meanTokens: 3, remainingAfter: () => 3 };
    expect(requestProfile({ promptTokens: 1, output }).output).toBe(output);
  });
});
