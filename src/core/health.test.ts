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
const refused: ProbeOutcome = { kind: "failed", reason: "ECONNREFUSED" };
const loading: ProbeOutcome = { kind: "loading", reason: "loading model" };
const authFailed: ProbeOutcome = { kind: "auth_failed", reason: "answered 401" };
const timedOut = (startedAtMs: number): ProbeOutcome => ({ kind: "timed_out", reason: "no answer", startedAtMs });

function trackerAfter(...outcomes: readonly ProbeOutcome[]): EndpointHealth {
  const health = new EndpointHealth();
  for (const outcome of outcomes) health.probed(outcome, 0);
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
    expect(health.probed(ok, 0)).toEqual({ from: "unknown", to: "ready", reason: "probe answered" });
    expect(health.probed(ok, 0)).toBeUndefined();
    expect(health.probed(authFailed, 0)).toEqual({ from: "ready", to: "auth_failed", reason: "answered 401" });
    expect(health.probed(authFailed, 0)).toBeUndefined();
  });

  it("takes its thresholds from the options", () => {
    const health = new EndpointHealth({ ...DEFAULT_HEALTH_OPTIONS, failuresToDown: 1, successesToReady: 3 });
    expect(health.probed(failed, 0)?.to).toBe("down");
    health.probed(ok, 0);
    expect(health.probed(ok, 0)).toBeUndefined();
    expect(health.probed(ok, 0)?.to).toBe("ready");
  });

  describe("time-outs of the probe under load", () => {
    it("does not count while tokens flow during the probe", () => {
      const health = trackerAfter(ok);
      for (let startedAtMs = 0; startedAtMs < 100_000; startedAtMs += 10_000) {
        health.progressed(startedAtMs + 1_000);
        expect(health.probed(timedOut(startedAtMs), 0)).toBeUndefined();
      }
      expect(health.availability).toBe("ready");
    });

    it("does not count when the last token came within the window before the probe", () => {
      const health = new EndpointHealth({ ...DEFAULT_HEALTH_OPTIONS, failuresToDown: 1 });
      health.progressed(1_000);
      expect(health.probed(timedOut(6_000), 0)).toBeUndefined();
      expect(health.probed(timedOut(6_001), 0)?.to).toBe("down");
    });

    it("counts an answer that says failed, tokens or not", () => {
      const health = new EndpointHealth({ ...DEFAULT_HEALTH_OPTIONS, failuresToDown: 1 });
      health.progressed(1_000);
      expect(health.probed(failed, 0)?.to).toBe("down");
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
      expect(trafficFirst.probed(failed, 0)?.to).toBe("down");
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
      expect(health.probed(failed, 0)?.to).toBe("down");
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

  describe("refused connections", () => {
    it("are told of from the first on, once it is down for them", () => {
      const health = trackerAfter(ok);
      health.connectFailed("ECONNREFUSED", 10);
      expect(health.refusesSinceMs).toBeUndefined();
      health.probed(refused, 20);
      expect([health.availability, health.refusesSinceMs]).toEqual(["down", 10]);
    });

    it("are told of when only probes met them", () => {
      const health = trackerAfter(ok);
      for (const nowMs of [5, 6, 7]) health.probed(refused, nowMs);
      expect(health.refusesSinceMs).toBe(5);
    });

    it("are not why an endpoint is down that fails in another way", () => {
      const health = trackerAfter(ok, failed, failed, failed);
      expect([health.availability, health.refusesSinceMs]).toEqual(["down", undefined]);
    });

    it.each<[string, (health: EndpointHealth) => void]>([
      ["a probe is answered", (health) => health.probed(ok, 30)],
      ["it loads", (health) => health.probed(loading, 30)],
      ["a request that began later is answered", (health) => health.requestSucceeded(30)],
    ])("are forgotten when %s", (_, answer) => {
      const health = trackerAfter(ok);
      health.connectFailed("ECONNREFUSED", 10);
      health.probed(refused, 20);
      answer(health);
      for (let i = 0; i < 3; i++) health.probed(failed, 40);
      expect([health.availability, health.refusesSinceMs]).toEqual(["down", undefined]);
    });
  });

  describe("without a sign of life", () => {
    it("is an endpoint that is down and has answered neither probe nor request since", () => {
      const health = trackerAfter(ok, timedOut(9_000), timedOut(14_000));
      expect(health.isLifeless).toBe(false);
      health.probed(timedOut(19_000), 21_000);
      expect([health.availability, health.isLifeless]).toEqual(["down", true]);
    });

    it.each<[string, (health: EndpointHealth) => void]>([
      ["that refuses connections", (health) => health.probed(refused, 30_000)],
      ["that says what is wrong with it", (health) => health.probed(failed, 30_000)],
      ["that loads", (health) => health.probed(loading, 30_000)],
      ["that still sends something", (health) => health.progressed(22_000)],
    ])("is none %s", (_what, sign) => {
      const health = trackerAfter(ok, timedOut(9_000), timedOut(14_000), timedOut(19_000));
      sign(health);
      expect(health.isLifeless).toBe(false);
    });
  });

  it("takes other thresholds while it works", () => {
    const health = trackerAfter(ok, failed);
    health.configure({ ...DEFAULT_HEALTH_OPTIONS, failuresToDown: 2 });
    expect(health.probed(failed, 0)?.to).toBe("down");
  });

  it("reports every change and nothing but changes, whatever the order of events", () => {
    const event = fc.oneof(
      fc.constantFrom(ok, failed, loading, authFailed, timedOut(0), timedOut(9_000)),
      fc.constantFrom<TrafficEvent>("connectFailed", "progressed", "requestSucceeded"),
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

type TrafficEvent = "connectFailed" | "progressed" | "requestSucceeded";

function apply(
  health: EndpointHealth,
  event: ProbeOutcome | TrafficEvent,
  nowMs: number,
): ReturnType<EndpointHealth["probed"]> {
  if (typeof event === "object") return health.probed(event, nowMs);
  if (event === "connectFailed") return health.connectFailed("ECONNREFUSED", nowMs);
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
