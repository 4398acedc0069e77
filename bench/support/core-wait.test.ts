import { describe, expect, it } from "vitest";
import { coreWaitMs } from "./core-wait.ts";

describe("coreWaitMs", () => {
  it("only ever grows", () => {
    const before = coreWaitMs(process.pid);
    expect(before).toBeGreaterThanOrEqual(0);
    expect(coreWaitMs(process.pid)).toBeGreaterThanOrEqual(before);
  });

  it("throws for a process that is none", () => {
    expect(() => coreWaitMs(2 ** 30)).toThrow("ENOENT");
  });
});
