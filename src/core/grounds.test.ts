import { describe, expect, it } from "vitest";
import { Grounds } from "./grounds.ts";

describe("Grounds", () => {
  it("writes the explanation out when it is asked for, once", () => {
    let written = 0;
    const choice = {
      get considered() {
        written++;
        return [{ endpoint: "a", score: 1 }];
      },
    };
    const grounds = new Grounds("some_policy", "it is best", [{ endpoint: "b", why: "down" }], choice);
    expect(written).toBe(0);
    const { explanation } = grounds;
    expect(explanation).toEqual({
      policy: "some_policy",
      reason: "it is best",
      considered: [{ endpoint: "a", score: 1 }],
      excluded: [{ endpoint: "b", why: "down" }],
    });
    expect([grounds.explanation, grounds.considered]).toEqual([explanation, explanation.considered]);
    expect(written).toBe(1);
  });

  it("has nobody to show where no policy was asked", () => {
    expect(new Grounds("some_policy", "nobody is there", []).explanation.considered).toEqual([]);
  });
});
