import { describe, expect, it } from "vitest";
import { Clients, countRequests } from "./clients.ts";
import type { Workload, WorkloadRequest } from "./workload/workload.ts";

function request(name: string, next?: WorkloadRequest["next"]): WorkloadRequest {
  return { promptTokens: 1, outputTokens: 1, blockIds: [], sessionKey: name, tenant: undefined, next };
}

function workload(...arrivals: readonly (readonly [atMs: number, request: WorkloadRequest])[]): Workload {
  return { name: "w", blockTokens: 64, arrivals: arrivals.map(([atMs, each]) => ({ atMs, request: each })) };
}

describe("Clients", () => {
  it("sends arrivals and next turns in the order of their times", () => {
    const second = { thinkMs: 15, request: request("a2") };
    const clients = new Clients(workload([0, request("a1", second)], [10, request("b")], [30, request("c")]));
    expect(clients.take()?.sessionKey).toBe("a1");
    clients.goOn(second, 5);
    const names = [];
    for (let atMs = clients.firstAtMs; atMs < Number.POSITIVE_INFINITY; atMs = clients.firstAtMs) {
      names.push([atMs, clients.take()?.sessionKey]);
    }
    expect(names).toEqual([
      [10, "b"],
      [20, "a2"],
      [30, "c"],
    ]);
    expect(clients.sent).toBe(4);
    expect(clients.take()).toBeUndefined();
  });

  it("lets whoever was free first go first at one and the same moment", () => {
    const clients = new Clients(workload());
    const names = Array.from({ length: 20 }, (_, i) => `c${i}`);
    for (const name of names) clients.goOn({ thinkMs: 7, request: request(name) }, 0);
    expect(names.map(() => clients.take()?.sessionKey)).toEqual(names);
  });
});

it("countRequests counts every turn", () => {
  const chain = request("1", { thinkMs: 0, request: request("2", { thinkMs: 0, request: request("3") }) });
  expect(countRequests(workload([0, chain], [1, request("x")]))).toBe(4);
});
