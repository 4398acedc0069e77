import { describe, expect, it } from "vitest";
import { totalCalls } from "./system-calls.ts";

const TABLE = `% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 75.00    0.000300           3       100         2 read
 25.00    0.000100           2        50           write
------ ----------- ----------- --------- --------- ----------------
`;

describe("totalCalls", () => {
  it("reads the last line, with errors and without", () => {
    expect(totalCalls(`${TABLE}100.00    0.000400           2       150         2 total\n`)).toBe(150);
    expect(totalCalls(`${TABLE}100.00    0.000400           2       150           total\n`)).toBe(150);
  });

  it("knows nothing of a table without it", () => {
    expect(totalCalls(TABLE)).toBeUndefined();
  });
});
