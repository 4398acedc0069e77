import { describe, expect, it } from "vitest";
import { Fleet, times } from "../../../test/support/fleet.ts";
import { forgetLeavers } from "./endpoint-memory.ts";

describe("forgetLeavers", () => {
  const { candidates } = new Fleet([{ id: "here" }, { id: "new" }]);

  it("keeps endpoints that are only out for now", () => {
    const memory = new Map(times(4000, (index) => [`e${index}`, index]));
    forgetLeavers(memory, candidates);
    expect(memory.size).toBe(4000);
  });

  it("keeps only the candidates once there are more names than a fleet has", () => {
    const memory = new Map(times(5000, (index) => [`e${index}`, index]));
    memory.set("here", 7);
    forgetLeavers(memory, candidates);
    expect([...memory]).toEqual([["here", 7]]);
  });
});
