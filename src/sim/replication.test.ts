import { describe, expect, it } from "vitest";
import { Balancer, endpoint, requestProfile, seededRandom } from "../core/index.ts";
import { parseFleet } from "./fleet-spec.ts";
import { exchangeWork } from "./replication.ts";
import { simulate } from "./simulation.ts";
import type { Replicating, SimulationOptions } from "./simulation-options.ts";
import { syntheticWorkload } from "./workload/synthetic.ts";

describe("exchangeWork", () => {
  const replication = exchangeWork(200);
  const endpoints = ["a", "b"].map((id) => endpoint({ id }));
  const balancers = () =>
    [1, 2, 3].map((seed) => new Balancer({ policy: "least_connections", endpoints, random: seededRandom(seed) }));
  const requestsOf = (balancer: Balancer) => balancer.members.reduce((sum, { account }) => sum + account.requests, 0);
  const chat = requestProfile({ promptTokens: 100 });
  /** Moves whatever is due up to `untilMs`. */
  const moveOn = (replicating: Replicating, untilMs: number) => {
    while (replicating.nextAtMs <= untilMs) replicating.move(replicating.nextAtMs);
  };

  it.each([200, 10])(
    "tells every balancer what all others have in flight, and none its own twice (%i ms)",
    (interval) => {
      const all = balancers();
      for (const [index, balancer] of all.entries()) for (let i = 0; i <= index; i++) balancer.decide(chat, i);
      expect(all.map(requestsOf)).toEqual([1, 2, 3]);
      const replicating = exchangeWork(interval).begin(all);
      moveOn(replicating, 200);
      expect(all.map(requestsOf)).toEqual([6, 6, 6]);
      moveOn(replicating, 1400);
      expect(all.map(requestsOf)).toEqual([6, 6, 6]);
    },
  );

  it.each([200, 10])("takes back what has ended since (%i ms)", (interval) => {
    const all = balancers();
    const replicating = exchangeWork(interval).begin(all);
    const decision = (all[0] as Balancer).decide(chat, 0);
    moveOn(replicating, 200);
    if (decision.kind === "routed") all[0]?.finish(decision.lease, { kind: "completed" }, 201);
    expect(all.map(requestsOf)).toEqual([0, 1, 1]);
    moveOn(replicating, 400);
    expect(all.map(requestsOf)).toEqual([0, 0, 0]);
  });

  it("lets them speak one after the other, and messages take their time", () => {
    const all = balancers().slice(0, 2);
    const replicating = exchangeWork(10, 3).begin(all);
    for (const balancer of all) balancer.decide(chat, 0);
    const seen = [5, 8, 10, 13].map((untilMs) => {
      moveOn(replicating, untilMs);
      return all.map(requestsOf);
    });
    expect(seen).toEqual([
      [1, 1],
      [1, 2],
      [1, 2],
      [2, 2],
    ]);
  });

  it("brings several balancers near to one, where they wait longer each for itself", () => {
    const workload = syntheticWorkload(
      "synthetic:rate=45,requests=2500,in=lognormal(2500,1),out=lognormal(150,1),prefix=32x1024",
    );
    const meanMs = (replicas?: SimulationOptions["replicas"]): number => {
      const { requests, fates } = simulate({
        workload,
        fleet: parseFleet("4*llama8b-h100"),
        policy: "least_delay",
        ...(replicas === undefined ? {} : { replicas }),
      });
      expect(fates.ended).toBe(2500);
      const times = requests.map(({ arrivedAtMs, endedAtMs }) => (endedAtMs ?? Number.NaN) - arrivedAtMs);
      return times.reduce((sum, time) => sum + time, 0) / times.length;
    };
    const oneMs = meanMs();
    const aloneMs = meanMs({ count: 4, dealing: "in_turn" });
    const togetherMs = meanMs({ count: 4, dealing: "in_turn", replication });
    expect(togetherMs).toBeLessThan(aloneMs);
    expect(togetherMs).toBeLessThan(1.1 * oneMs);
  });
});
