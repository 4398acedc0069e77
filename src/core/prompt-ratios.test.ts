import { describe, expect, it } from "vitest";
import { PromptRatios } from "./prompt-ratios.ts";

describe("PromptRatios", () => {
  it("starts at 4 bytes a token", () => {
    expect(new PromptRatios().ratio("m")).toBe(4);
  });

  it("comes within a tenth of the truth in a few prompts, for each model on its own", () => {
    const ratios = new PromptRatios();
    for (let i = 0; i < 6; i++) ratios.observe("cjk", 2000, 1000);
    expect(ratios.ratio("cjk")).toBeLessThan(2.2);
    expect(ratios.ratio("other")).toBe(4);
  });

  it("weighs a prompt by its length: short ones are all template", () => {
    const ratios = new PromptRatios();
    ratios.observe("m", 400_000, 100_000);
    for (let i = 0; i < 100; i++) ratios.observe("m", 2, 30);
    expect(ratios.ratio("m")).toBeGreaterThan(3.8);
  });

  it("follows a change of traffic after a million tokens of the old", () => {
    const ratios = new PromptRatios();
    for (let i = 0; i < 5000; i++) ratios.observe("m", 4000, 1000);
    for (let i = 0; i < 3000; i++) ratios.observe("m", 2000, 1000);
    expect(ratios.ratio("m")).toBeLessThan(2.2);
  });

  it.each([
    [0, 10],
    [10, 0],
    [-1, 10],
    [10, -1],
    [Number.NaN, 10],
    [10, Number.NaN],
  ])("ignores a count of %d bytes in %d tokens", (bytes, tokens) => {
    const ratios = new PromptRatios();
    ratios.observe("m", bytes, tokens);
    expect(ratios.ratio("m")).toBe(4);
  });

  it("does not grow with the names clients make up", () => {
    const ratios = new PromptRatios();
    for (let i = 0; i < 1024; i++) ratios.observe(`model-${i}`, 200_000, 100_000);
    ratios.observe("one too many", 200_000, 100_000);
    expect(ratios.ratio("one too many")).toBe(4);
    ratios.observe("model-0", 200_000, 100_000);
    expect(ratios.ratio("model-0")).toBeLessThan(2.01);
  });
});
