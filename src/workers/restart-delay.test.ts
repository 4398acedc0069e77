import { describe, expect, it } from "vitest";
import { RestartDelay } from "./restart-delay.ts";

describe("RestartDelay", () => {
  it("grows with each that dies young, up to 10 s", () => {
    const delay = new RestartDelay();
    expect(Array.from({ length: 9 }, () => delay.nextMs(500))).toEqual([
      100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000,
    ]);
  });

  it("is short again after one that lived long", () => {
    const delay = new RestartDelay();
    for (let i = 0; i < 5; i++) delay.nextMs(500);
    expect([delay.nextMs(3_600_000), delay.nextMs(500)]).toEqual([100, 200]);
  });
});
