import { describe, expect, it } from "vitest";
import { relativePaces } from "./engine-pace.ts";
import { parseFleet, resizeFleet } from "./fleet-spec.ts";

describe("parseFleet", () => {
  it("reads groups, counts and speeds, and numbers each kind of GPU", () => {
    const { text, engines } = parseFleet("2*llama8b-h100, llama8b-a100@0.5,2*llama70b-tp4-h100");
    expect(text).toBe("2*llama8b-h100,llama8b-a100@0.5,2*llama70b-tp4-h100");
    expect(engines.map(({ id, profile, speed }) => `${id} ${profile.name} ${speed}`)).toEqual([
      "h100-1 llama8b-h100 1",
      "h100-2 llama8b-h100 1",
      "a100-1 llama8b-a100 0.5",
      "h100-3 llama70b-tp4-h100 1",
      "h100-4 llama70b-tp4-h100 1",
    ]);
  });

  it.each([
    ["", /"" is no group of engines; expected COUNT\*PROFILE@SPEED/],
    ["4*llama8b-h100,", /"" is no group/],
    ["4 llama8b-h100", /expected COUNT\*PROFILE/],
    ["4*h100", /unknown engine profile "h100"; known profiles: llama8b-h100, /],
    ["0*llama8b-h100", /expected 1 to 1000 engines, not 0/],
    ["5000*llama8b-h100", /expected 1 to 1000 engines, not 5000/],
    ["llama8b-h100@0", /a speed must be above 0/],
  ])("says of %j what would be right", (text, message) => {
    expect(() => parseFleet(text)).toThrow(message);
  });
});

describe("resizeFleet", () => {
  it("makes more or fewer of the one kind there is", () => {
    expect(resizeFleet(parseFleet("2*llama8b-a100@0.5"), 5).text).toBe("5*llama8b-a100@0.5");
    expect(resizeFleet(parseFleet("8*llama8b-a100"), 1).engines).toHaveLength(1);
  });

  it("does not guess how a mixed fleet would grow", () => {
    expect(() => resizeFleet(parseFleet("llama8b-a100,llama8b-h100"), 4)).toThrow(/a fleet of one kind only/);
    expect(() => resizeFleet(parseFleet("llama8b-a100,llama8b-a100@2"), 4)).toThrow(/a fleet of one kind only/);
  });
});

describe("relativePaces", () => {
  it("compares engines to the fastest", () => {
    const paces = relativePaces(parseFleet("llama8b-h100,llama8b-h100@0.5,llama8b-a100").engines);
    expect(paces).toMatchObject({ "h100-1": 1, "h100-2": 0.5 });
    expect(paces["a100-1"]).toBeGreaterThan(0.25);
    expect(paces["a100-1"]).toBeLessThan(0.6);
  });
});
