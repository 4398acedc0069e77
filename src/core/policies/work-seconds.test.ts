import { describe, expect, it } from "vitest";
import { Fleet } from "../../../test/support/fleet.ts";
import { requestProfile } from "../request.ts";
import { workSeconds, workSecondsAfter } from "./work-seconds.ts";

describe("work in seconds", () => {
  const fleet = new Fleet([{ id: "a", tokensPerSecond: 500 }]);
  fleet.send("a", requestProfile({ promptTokens: 1000, expectedOutputTokens: 400 }));

  it("is the tokens waiting for prefill at 0.1 and those to decode at 1, over the capacity", () => {
    expect(workSeconds(fleet.candidate("a"))).toBe(1);
  });

  it("adds the request that is being placed", () => {
    const request = requestProfile({ promptTokens: 500, expectedOutputTokens: 200 });
    expect(workSecondsAfter(request, fleet.candidate("a"))).toBe(1.5);
  });
});
