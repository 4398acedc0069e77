import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Availability,
  DEFAULT_HEALTH_OPTIONS,
  EndpointHealth,
  type ProbeOutcome,
  takesTraffic,
} from "./health.ts";

const ok: ProbeOutcome = { kind: "ok" };
const failed: ProbeOutcome = { kind: "failed", reason: "answered 500" };
const loading: ProbeOutcome = { kind: "loading", reason: "loading model" };
const authFailed: ProbeOutcome = { kind: "auth_failed", reason: "answered 401" };
const timedOut = (startedAtMs: number): ProbeOutcome => ({ kind: "timed_out", reason: "no answer", startedAtMs });

function trackerAfter(...outcomes: readonly ProbeOutcome[]): EndpointHealth {
  const health = new EndpointHealth();
  for (const outcome of outcomes) health.probed(outcome);
  return health;
}

describe("EndpointHealth", () => {
  const cases: readonly [string, readonly ProbeOutcome[], Availability][] = [
    ["starts unknown", [], "unknown"],
    ["is ready after the first good probe", [ok], "ready"],
    ["stays unknown while too few probes failed", [failed, failed], "unknown"],
    ["is down after three failures in a row, never having been ready", [failed, failed, failed], "down"],
    ["stays ready through two failures", [ok, failed, failed], "ready"],
    ["forgets failures at a good probe", [ok, failed, failed, ok, failed, failed], "ready"],
    ["counts time-outs and other failures together", [ok, timedOut(0), failed, timedOut(0)], "down"],
    ["stays down after one good probe", [failed, failed, failed, ok], "down"],
    ["is ready again after two good probes in a row", [failed, failed, failed, ok, ok], "ready"],
    ["starts over when recovery is interrupted", [failed, failed, failed, ok, failed, ok], "down"],
    ["is loading at once, even from ready", [ok, loading], "loading"],
    ["is ready at the first good probe after loading", [loading, ok], "ready"],
    ["is loading when it comes back up to load its model", [failed, failed, failed, loading], "loading"],
    ["does not count loading as a failure", [failed, failed, loading, failed, failed], "loading"],
    ["goes down from loading by the same threshold", [loading, failed, failed, failed], "down"],
    ["says auth_failed at once", [authFailed], "auth_failed"],
    ["is ready at the first probe with the right key", [authFailed, ok], "ready"],
    ["keeps auth_failed through a failure", [authFailed, failed], "auth_failed"],
  ];
  it.each(cases)("%s", (_name, outcomes, expected) => {
    expect(trackerAfter(...outcomes).availability).toBe(expected);
  });

  it("returns each change as a value, once", () => {
    const health = new EndpointHealth();
    expect(health.probed(ok)).toEqual({ from: "unknown", to: "ready", reason: "probe answered" });
    expect(health.probed(ok)).toBeUndefined();
    expect(health.probed(authFailed)).toEqual({ from: "ready", to: "auth_failed", reason: "answered 401" });
    expect(health.probed(authFailed)).toBeUndefined();
  });

  it("takes its thresholds from the options", () => {
    const health = new EndpointHealth({ ...DEFAULT_HEALTH_OPTIONS, failuresToDown: 1, successesToReady: 3 });
    expect(health.probed(failed)?.to).toBe("down");
    health.probed(ok);
    expect(health.probed(ok)).toBeUndefined();
    expect(health.probed(ok)?.to).toBe("ready");
  });

  describe("time-outs of the probe under load", () => {
    it("does not count while tokens flow during the probe", () => {
      const health = trackerAfter(ok);
      for (let startedAtMs = 0; startedAtMs < 100_000; startedAtMs += 10_000) {
        health.progressed(startedAtMs + 1_000);
        expect(health.probed(timedOut(startedAtMs))).toBeUndefined();
      }
      expect(health.availability).toBe("ready");
    });

    it("does not count when the last token came within the window before the probe", () => {
      const health = new EndpointHealth({ ...DEFAULT_HEALTH_OPTIONS, failuresToDown: 1 });
      health.progressed(1_000);
      expect(health.probed(timedOut(6_000))).toBeUndefined();
      expect(health.probed(timedOut(6_001))?.to).toBe("down");
    });

    it("counts an answer that says failed, tokens or not", () => {
      const health = new EndpointHealth({ ...DEFAULT_HEALTH_OPTIONS, failuresToDown: 1 });
      health.progressed(1_000);
      expect(health.probed(failed)?.to).toBe("down");
    });
  });

  describe("real traffic", () => {
    it("stays ready after one refused connection while probes are good", () => {
      const health = trackerAfter(ok);
      expect(health.connectFailed("ECONNREFUSED", 0)).toBeUndefined();
    });

    it("is down at the third refused connection in a row", () => {
      const health = trackerAfter(ok);
      health.connectFailed("ECONNREFUSED", 0);
      health.connectFailed("ECONNREFUSED", 1);
      expect(health.connectFailed("ECONNREFUSED", 2)).toEqual({ from: "ready", to: "down", reason: "ECONNREFUSED" });
    });

    it("is down at once when probe and traffic agree, in either order", () => {
      const probeFirst = trackerAfter(ok, failed);
      expect(probeFirst.connectFailed("ECONNREFUSED", 0)?.to).toBe("down");
      const trafficFirst = trackerAfter(ok);
      trafficFirst.connectFailed("ECONNREFUSED", 0);
      expect(trafficFirst.probed(failed)?.to).toBe("down");
    });

    it("forgets refused connections when a later request is answered", () => {
      const health = trackerAfter(ok);
      health.connectFailed("ECONNREFUSED", 10);
      health.connectFailed("ECONNREFUSED", 20);
      health.requestSucceeded(21);
      expect(health.connectFailed("ECONNREFUSED", 30)).toBeUndefined();
    });

    it("does not forget them when an older request is answered", () => {
      const health = trackerAfter(ok);
      health.connectFailed("ECONNREFUSED", 10);
      health.connectFailed("ECONNREFUSED", 20);
      health.requestSucceeded(5);
      expect(health.connectFailed("ECONNREFUSED", 30)?.to).toBe("down");
    });

    it("does not clear failed probes", () => {
      const health = trackerAfter(ok, failed, failed);
      health.requestSucceeded(100);
      expect(health.probed(failed)?.to).toBe("down");
    });

    it("makes an unknown endpoint ready when a request is answered", () => {
      expect(new EndpointHealth().requestSucceeded(0)).toEqual({
        from: "unknown",
        to: "ready",
        reason: "a request was answered",
      });
    });

    it.each<[Availability, readonly ProbeOutcome[]]>([
      ["down", [failed, failed, failed]],
      ["loading", [loading]],
      ["auth_failed", [authFailed]],
    ])("does not bring back an endpoint that is %s", (availability, outcomes) => {
      const health = trackerAfter(...outcomes);
      health.progressed(50);
      expect(health.requestSucceeded(100)).toBeUndefined();
      expect(health.availability).toBe(availability);
    });
  });

  describe("failed answers", () => {
    it("take it down at the third in a row, good probes between them or not", () => {
      const health = trackerAfter(ok);
      expect(health.requestFailed("answered 500")).toBeUndefined();
      health.probed(ok);
      expect(health.requestFailed("answered 500")).toBeUndefined();
      health.probed(ok);
      expect(health.requestFailed("answered 500")).toEqual({ from: "ready", to: "down", reason: "answered 500" });
    });

    it("are forgotten at a good answer, whenever its request began", () => {
      const health = trackerAfter(ok);
      health.connectFailed("ECONNREFUSED", 10);
      health.requestFailed("answered 500");
      health.requestFailed("answered 500");
      health.requestSucceeded(5);
      health.requestFailed("answered 500");
      expect(health.requestFailed("answered 500")).toBeUndefined();
    });

    it("do not add up with failed probes and refused connections", () => {
      const health = trackerAfter(ok, failed);
      health.requestFailed("answered 500");
      health.requestFailed("answered 500");
      expect(health.availability).toBe("ready");
    });

    it("leave it down until as many good probes as after any other failure, and then start over", () => {
      const health = trackerAfter(ok, ok, ok);
      for (let i = 0; i < 3; i++) health.requestFailed("answered 500");
      expect(health.probed(ok)).toBeUndefined();
      expect(health.requestFailed("answered 500")).toBeUndefined();
      expect(health.probed(ok)?.to).toBe("ready");
      health.requestFailed("answered 500");
      expect(health.requestFailed("answered 500")).toBeUndefined();
    });

    it.each<[Availability, ProbeOutcome]>([
      ["loading", loading],
      ["auth_failed", authFailed],
    ])("of old requests change nothing while it is %s", (availability, outcome) => {
      const health = trackerAfter(outcome);
      for (let i = 0; i < 5; i++) expect(health.requestFailed("answered 500")).toBeUndefined();
      expect(health.availability).toBe(availability);
    });
  });

  it("reports every change and nothing but changes, whatever the order of events", () => {
    const event = fc.oneof(
      fc.constantFrom(ok, failed, loading, authFailed, timedOut(0), timedOut(9_000)),
      fc.constantFrom<TrafficEvent>("connectFailed", "requestFailed", "progressed", "requestSucceeded"),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        const health = new EndpointHealth();
        events.forEach((each, nowMs) => {
          const before = health.availability;
          const transition = apply(health, each, nowMs);
          expect(transition?.to ?? before).toBe(health.availability);
          if (transition !== undefined) expect(transition.from).toBe(before);
          expect(transition?.to).not.toBe(before);
        });
      }),
    );
  });
});

type TrafficEvent = "connectFailed" | "requestFailed" | "progressed" | "requestSucceeded";

function apply(
  health: EndpointHealth,
  event: ProbeOutcome | TrafficEvent,
  nowMs: number,
): ReturnType<EndpointHealth["probed"]> {
  if (typeof event === "object") return health.probed(event);
  if (event === "connectFailed") return health.connectFailed("ECONNREFUSED", nowMs);
  if (event === "requestFailed") return health.requestFailed("answered 500");
  if (event === "requestSucceeded") return health.requestSucceeded(nowMs);
  health.progressed(nowMs);
  return undefined;
}

describe("takesTraffic", () => {
  it.each<[Availability, boolean]>([
    ["unknown", true],
    ["ready", true],
    ["loading", false],
    ["down", false],
    ["auth_failed", false],
  ])("%s: %s", (availability, expected) => {
    expect(takesTraffic(availability)).toBe(expected);
  });
});
