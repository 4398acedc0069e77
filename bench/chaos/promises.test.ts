import { describe, expect, it } from "vitest";
import { TEXT_APIS, type TextApi } from "../support/text-api.ts";
import type { Call } from "../support/text-call.ts";
import { promisesOf } from "./promises.ts";
import type { ChaosRecord } from "./run.ts";

const [api] = TEXT_APIS as readonly [TextApi];
const FOOTPRINT = { heapBytes: 20e6, externalBytes: 3e6, residentBytes: 80e6, sockets: 3 };

function call(id: string, told: Partial<Call> = {}): Call {
  const question = { api, isStream: false, body: {}, outputTokens: 1, texts: undefined };
  const times = { sentAtMs: 0, endedAtMs: 10 };
  return {
    id,
    question,
    ...times,
    ending: "whole",
    status: 200,
    cause: "",
    isOwnRefusal: false,
    endpoint: "e1",
    texts: [],
    ...told,
  };
}

function record(told: Partial<ChaosRecord> = {}, calls: readonly Call[] = [call("a")]): ChaosRecord {
  return {
    calm: { calls: [], unborn: 0 },
    storm: { calls: [...calls], unborn: 0 },
    struck: [],
    outcomes: { ok: calls.length },
    open: { heldRequests: 0, leases: {}, inFlight: 0 },
    before: FOOTPRINT,
    after: FOOTPRINT,
    log: [],
    lastWords: undefined,
    ...told,
  };
}

/** Names of the promises that a run broke. */
function broken(run: ChaosRecord): string[] {
  return promisesOf(run).flatMap(({ name, isKept }) => (isKept ? [] : [name]));
}

const LOST = "no request that had not begun is lost to a single endpoint";
const refused = (status: number): Partial<Call> => ({ ending: "refused", status, isOwnRefusal: true, cause: "x" });
const failedAt = (endpoint: string): ChaosRecord["log"][number] => ({ level: 40, msg: "", requestId: "a", endpoint });

describe("the promises", () => {
  it("are all kept by a run in which everything went well", () => {
    expect(broken(record())).toEqual([]);
  });

  it("are broken by a request that is counted twice, or not at all, or still in flight", () => {
    const name = "every request has exactly one outcome";
    expect(broken(record({ outcomes: { ok: 1, client_closed: 1 } }))).toEqual([name]);
    expect(broken(record({ outcomes: {} }))).toEqual([name]);
    expect(broken(record({ open: { heldRequests: 0, leases: {}, inFlight: 1 } }))).toEqual([name]);
  });

  it("are broken by a request that one endpoint failed, not by one that several did", () => {
    expect(broken(record({}, [call("a", refused(502))]))).toEqual([LOST]);
    expect(broken(record({ log: [failedAt("e1")] }, [call("a", refused(504))]))).toEqual([LOST]);
    expect(broken(record({ log: [failedAt("e1"), failedAt("e1")] }, [call("a", refused(502))]))).toEqual([LOST]);
    expect(broken(record({ log: [failedAt("e1"), failedAt("e2")] }, [call("a", refused(502))]))).toEqual([]);
    expect(broken(record({}, [call("a", { ending: "lost", status: 0 })]))).toEqual([LOST]);
  });

  it("let the balancer say that one should come again, and pass on what engines say", () => {
    expect(broken(record({}, [call("a", refused(429))]))).toEqual([]);
    expect(broken(record({}, [call("a", { ending: "refused", status: 500 })]))).toEqual([]);
  });

  it.each<[string, Partial<ChaosRecord>, readonly Call[]]>([
    ["no answer ends as if it were whole and is not", {}, [call("a", { ending: "false" })]],
    ["every request comes to an end, and without faults to a good one", {}, [call("a", { ending: "hung" })]],
    [
      "no lease is left and nothing is held",
      { open: { heldRequests: 0, leases: { "e1.requests": 1 }, inFlight: 0 } },
      [call("a")],
    ],
    ["no lease is left and nothing is held", { open: { heldRequests: 1, leases: {}, inFlight: 0 } }, [call("a")]],
    ["the heap is back to its base", { after: { ...FOOTPRINT, heapBytes: 40e6 } }, [call("a")]],
    ["the sockets are back to their base", { after: { ...FOOTPRINT, sockets: 4 } }, [call("a")]],
    ["nothing goes wrong inside the balancer", { log: [{ level: 50, msg: "x" }] }, [call("a")]],
  ])("say when this is broken: %s", (name, told, calls) => {
    expect(broken(record(told, calls))).toEqual([name]);
  });
});
