import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { anyCap, anyEvent, IDS, LawfulRun } from "../../test/support/lawful-run.ts";
import type { BalancerOptions } from "../core/index.ts";
import { fairOrder } from "./fair-order.ts";

/** Policies that hold requests, each in its own way. */
const SETUPS: readonly [string, Omit<BalancerOptions, "endpoints" | "order">][] = [
  ["least_delay, which binds late", { policy: "least_delay" }],
  [
    "token_aware, with one line for a full pool",
    { policy: "token_aware", policyOptions: { horizonSeconds: 0.1 }, whenFull: "hold" },
  ],
];

describe.each(SETUPS)("whatever happens to a fleet with tenants and priorities under %s", (_, setup) => {
  it("nobody waits in vain, nobody is lost, and nothing is left when all is over", () => {
    const seen = { held: 0, routed: 0, queue_full: 0, queue_timeout: 0, shed: 0 };
    fc.assert(
      fc.property(
        fc.subarray(IDS, { minLength: 1 }),
        anyCap,
        fc.array(anyEvent, { maxLength: 100, size: "max" }),
        (ids, cap, events) => {
          const run = new LawfulRun(ids, cap, { ...setup, order: fairOrder() });
          for (const event of events) {
            run.happen(event);
            run.check();
          }
          run.endAll();
          for (const fate of Object.keys(seen) as (keyof typeof seen)[]) seen[fate] += run.seen[fate] ?? 0;
        },
      ),
      { seed: 1, numRuns: 500 },
    );
    // Or it would say little.
    expect(seen.held).toBeGreaterThan(1000);
    expect(seen.routed).toBeGreaterThan(1000);
    expect(seen.queue_full).toBeGreaterThan(100);
    expect(seen.queue_timeout).toBeGreaterThan(100);
    expect(seen.shed).toBeGreaterThan(100);
  });
});
