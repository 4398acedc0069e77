import { describe, expect, it } from "vitest";
import { type Fault, FaultScript, faultSpec, parseFault } from "./faults.ts";

function script(...specs: readonly string[]): FaultScript {
  return new FaultScript(specs.map((spec) => faultSpec.parse(spec)));
}

describe("parseFault", () => {
  const always = { value: 0, count: Number.POSITIVE_INFINITY, after: 0, retryAfter: undefined };

  it.each<[string, Partial<Fault>]>([
    ["status=503", { kind: "status", value: 503 }],
    ["status=429,count=3,retry-after=2", { kind: "status", value: 429, count: 3, retryAfter: 2 }],
    ["hold", { kind: "hold" }],
    ["stall,after=4", { kind: "stall", after: 4 }],
    ["reset,after=0,count=1", { kind: "reset", count: 1 }],
    ["fin,count=0", { kind: "fin", count: 0 }],
    ["error,after=2", { kind: "error", after: 2 }],
    ["freeze=2000,after=10", { kind: "freeze", value: 2000, after: 10 }],
    ["refuse-stream-options", { kind: "refuse-stream-options" }],
    ["health=503,count=1", { kind: "health", value: 503, count: 1 }],
  ])("reads %s", (spec, expected) => {
    expect(parseFault(spec)).toEqual({ ...always, ...expected });
  });

  it.each([
    ["", 'unknown fault ""'],
    ["explode", 'unknown fault "explode"'],
    ["toString", 'unknown fault "toString"'],
    ["status", "needs a value from 400 to 599"],
    ["status=200", "needs a value from 400 to 599"],
    ["freeze=soon", "needs a value"],
    ["hold=3", "takes no value"],
    ["hold,often=3", 'unknown part "often"'],
    ["hold,count=-1", '"count" needs a whole number'],
    ["hold,count", '"count" needs a whole number'],
  ])("says what is wrong with '%s'", (spec, problem) => {
    expect(parseFault(spec)).toContain(problem);
    expect(faultSpec.safeParse(spec).success).toBe(false);
  });
});

describe("FaultScript", () => {
  it("strikes in order, each fault as often as it says", () => {
    const faults = script("status=503,count=2", "hold,count=1");
    expect([1, 2, 3, 4].map(() => faults.strike(false)?.kind)).toEqual(["status", "status", "hold", undefined]);
  });

  it("passes over faults that do not fit the request without using them up", () => {
    const faults = script("refuse-stream-options,count=1", "reset,count=1");
    expect(faults.strike(false)?.kind).toBe("reset");
    expect(faults.strike(true)?.kind).toBe("refuse-stream-options");
    expect(faults.strike(true)).toBeUndefined();
  });

  it("keeps probes and requests apart", () => {
    const faults = script("health=503,count=1", "hold,count=1");
    expect(faults.strike(true)?.kind).toBe("hold");
    expect(faults.healthStatus()).toBe(503);
    expect(faults.healthStatus()).toBeUndefined();
  });

  it("forgets the old script when it is replaced", () => {
    const faults = script("hold");
    faults.replace([faultSpec.parse("status=500")]);
    expect(faults.strike(false)?.kind).toBe("status");
    faults.replace([]);
    expect(faults.strike(false)).toBeUndefined();
  });
});
