import { describe, expect, it } from "vitest";
import { allocatedBytes } from "./allocation.ts";

const LINE = "[31562:0x2f8daee0]       20 ms: pause=1.0 mutator=15.5 gc=s reduce_memory=0 total_size_after=3596312";

describe("allocatedBytes", () => {
  it("adds up what all collections tell, among other lines", () => {
    const log = `${LINE} allocated=3960536 promoted=0\nready, allocated=5 all\n${LINE} allocated=40 promoted=0\n`;
    expect(allocatedBytes(log)).toBe(3_960_576);
  });

  it("takes what was freed late off again", () => {
    const log = `${LINE} allocated=1000 promoted=0\n${LINE} allocated=18446744073709551516 promoted=0\n`;
    expect(allocatedBytes(log)).toBe(900);
  });

  it("is 0 where nothing was collected", () => {
    expect(allocatedBytes('{"level":30,"msg":"listening"}\n')).toBe(0);
  });
});
