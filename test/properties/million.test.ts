import { describe, expect, it } from "vitest";
import { fairOrder } from "../../src/admission/index.ts";
import { policyDefinitions } from "../../src/core/index.ts";
import { RandomTraffic } from "./random-traffic.ts";

/** All policies together make 100,000 and more; `npm run chaos -- --core` sends a million. */
const REQUESTS = 12_000;

describe("a balancer under random requests and faults", () => {
  it.each(policyDefinitions.map(({ name }) => name))(
    "keeps its ledger equal to the sum of its leases, and holds what it was told to, under %s",
    (policy) => {
      const setups = [{ whenFull: "refuse" }, { whenFull: "hold", order: fairOrder() }] as const;
      for (const setup of setups) {
        const traffic = new RandomTraffic({ policy, ...setup, seed: 11 });
        traffic.run(REQUESTS / 2);
        traffic.finish();
        const { requests, routed, retried, disturbances } = traffic.counts;
        expect(requests).toBe(REQUESTS / 2);
        expect(Math.min(routed, retried * 10, disturbances * 10)).toBeGreaterThan(REQUESTS / 4);
      }
    },
  );

  it("holds thousands of requests, sees some leave, and loses none", () => {
    const traffic = new RandomTraffic({ policy: "least_delay", whenFull: "hold", order: fairOrder(), seed: 12 });
    traffic.run(REQUESTS);
    traffic.finish();
    const { held, released, left } = traffic.counts;
    expect(held).toBeGreaterThan(1000);
    expect(left).toBeGreaterThan(100);
    // Each that was held was let go or left, once.
    expect(released + left).toBe(held);
  });
});
