import { describe, expect, it } from "vitest";
import { parseFleetEvents } from "./fleet-events.ts";
import { parseFleet } from "./fleet-spec.ts";

const FLEET = parseFleet("2*llama8b-h100");

describe("parseFleetEvents", () => {
  it("reads events in any order, and goes on numbering where the fleet ends", () => {
    const events = parseFleetEvents("join 2*llama8b-h100 at 10m; recover h100-2 at 360s, fail h100-2 at 300s", FLEET);
    expect(events).toMatchObject([
      { kind: "fail", atMs: 300_000, id: "h100-2" },
      { kind: "recover", atMs: 360_000, id: "h100-2" },
      { kind: "join", atMs: 600_000, engines: [{ id: "h100-3" }, { id: "h100-4" }] },
    ]);
  });

  it("reads nothing from an empty text", () => {
    expect(parseFleetEvents(" ", FLEET)).toEqual([]);
  });

  it("lets what joined fail", () => {
    expect(parseFleetEvents("join llama8b-h100 at 1s, fail h100-3 at 2s", FLEET)).toHaveLength(2);
  });

  it.each([
    ["kill h100-1 at 3s", /"kill h100-1 at 3s" is no event; expected "fail ENDPOINT at TIME"/],
    ["fail h100-1 at 3", /is no event; .* a TIME such as 300s or 5m/],
    ["fail a100-1 at 3s", /there is no endpoint "a100-1" at 3s; there are h100-1, h100-2$/],
    ["fail h100-3 at 1s, join llama8b-h100 at 2s", /there is no endpoint "h100-3" at 1s/],
    ["fail h100-1 at 1s, fail h100-1 at 2s", /"h100-1" cannot fail at 2s: it has failed already/],
    ["recover h100-1 at 1s", /"h100-1" cannot recover at 1s: it is well/],
    ["join 2*h100 at 1s", /unknown engine profile "h100"/],
  ])("says of %j what is wrong", (text, message) => {
    expect(() => parseFleetEvents(text, FLEET)).toThrow(message);
  });
});
