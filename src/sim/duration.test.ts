import { expect, it } from "vitest";
import { parseDurationMs } from "./duration.ts";

it.each([
  ["250ms", 250],
  ["1.5s", 1500],
  ["10m", 600_000],
  ["2h", 7_200_000],
  ["10", undefined],
  ["s", undefined],
  ["-1s", undefined],
  ["1 s", undefined],
])("reads %j as %s ms", (text, ms) => {
  expect(parseDurationMs(text)).toBe(ms);
});
