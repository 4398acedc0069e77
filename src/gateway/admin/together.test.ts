import { describe, expect, it } from "vitest";
import { type AdminAnswer, json, refusal } from "./admin-answer.ts";
import type { EndpointState, PoolState } from "./pool-state.ts";
import { allAlive, anyReady, endpointTogether, removalTogether, runtimeTogether } from "./together.ts";

function endpointOf(differing: Partial<EndpointState> = {}): EndpointState {
  return {
    id: "e1",
    url: "http://e1",
    engine: "vllm",
    availability: "ready",
    isDraining: false,
    breaker: { state: "closed", openings: 1 },
    warmth: 1,
    busyMs: 0,
    weight: 1,
    maxRequests: null,
    models: ["m"],
    connections: 2,
    work: {
      requests: 3,
      waitingRequests: 1,
      runningRequests: 2,
      heldRequests: 1,
      waitingPrefillTokens: 10,
      expectedOutputTokens: 20,
      contextTokens: 30,
    },
    speed: {},
    kvCapacityTokens: null,
    indexedBlocks: 5,
    signals: null,
    ...differing,
  };
}

function poolOf(endpoints: readonly EndpointState[], differing: Partial<PoolState> = {}): PoolState {
  const heldByPriority = { low: 0, normal: 1, high: 0 };
  const held = { heldRequests: 1, heldByPriority, heldBytes: 100 };
  return { name: "default", policy: "least_delay", ...held, endpoints, leavingEndpoints: [], ...differing };
}

function pageOf({ body }: AdminAnswer): unknown {
  return JSON.parse(body);
}

describe("answers of several", () => {
  it("about one endpoint: work adds up, and the worst that one believes is shown", () => {
    const doubtful = endpointOf({
      availability: "down",
      breaker: { state: "open", openings: 2 },
      warmth: 0.5,
      busyMs: 700,
    });
    const answer = endpointTogether([json(201, endpointOf()), json(200, doubtful)]);
    expect(answer.status).toBe(201);
    expect(pageOf(answer)).toEqual(
      endpointOf({
        availability: "down",
        breaker: { state: "open", openings: 3 },
        warmth: 0.5,
        busyMs: 700,
        connections: 4,
        work: {
          requests: 6,
          waitingRequests: 2,
          runningRequests: 4,
          heldRequests: 2,
          waitingPrefillTokens: 20,
          expectedOutputTokens: 40,
          contextTokens: 60,
        },
      }),
    );
  });

  it("about all pools: an endpoint that one does not have yet is shown by the others", () => {
    const leaving = { id: "e9", url: "http://e9", requests: 2, connections: 1 };
    const one = { pools: [poolOf([endpointOf()], { leavingEndpoints: [leaving] })], leavingPools: [] };
    const other = { pools: [poolOf([endpointOf(), endpointOf({ id: "e2" })], { leavingEndpoints: [leaving] })] };
    const [pool] = (
      pageOf(runtimeTogether([json(200, one), json(200, { ...other, leavingPools: [] })])) as {
        readonly pools: readonly PoolState[];
      }
    ).pools;
    expect(pool).toMatchObject({ heldRequests: 2, heldByPriority: { low: 0, normal: 2, high: 0 }, heldBytes: 200 });
    expect(pool?.endpoints.map(({ id, connections }) => [id, connections])).toEqual([
      ["e1", 4],
      ["e2", 2],
    ]);
    expect(pool?.leavingEndpoints).toEqual([{ ...leaving, requests: 4, connections: 2 }]);
  });

  it("leave out who refuses, unless all do", () => {
    const unknown = refusal(404, "no endpoint e1");
    expect(pageOf(endpointTogether([unknown, json(200, endpointOf())]))).toEqual(endpointOf());
    expect(endpointTogether([unknown, unknown])).toBe(unknown);
  });

  it("to a removal say how many requests still run at all of them", () => {
    const removed = { removed: "e1", pool: "default", requests: 2 };
    expect(pageOf(removalTogether([json(200, removed), json(200, removed)]))).toEqual({ ...removed, requests: 4 });
  });

  it("to probes: alive if all are, ready if one is", () => {
    const [good, bad] = [json(200, { status: "ok" }), refusal(503, "worker 2 does not answer")];
    expect(allAlive([good, good])).toBe(good);
    expect(allAlive([good, bad])).toBe(bad);
    expect(anyReady([bad, good])).toBe(good);
    expect(anyReady([bad, bad])).toBe(bad);
  });
});
