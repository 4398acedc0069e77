import { Gauge, type Registry } from "prom-client";
import type { Runtime, ServedPool } from "../../runtime/index.ts";

/** What pools hold and what runs on at endpoints that left them, as it is at the moment of the scrape. */
export function registerPoolGauges(registry: Registry, runtime: Runtime): void {
  const pools = (): readonly ServedPool[] => [...runtime.pools, ...runtime.leavingPools];
  new Gauge({
    name: "evenkeel_held_requests",
    help: "Requests held at the balancer, by the priority they came with.",
    labelNames: ["pool", "priority"],
    registers: [registry],
    collect() {
      this.reset();
      for (const { name: pool, balancer } of pools()) {
        for (const [priority, requests] of Object.entries(balancer.heldByPriority))
          this.inc({ pool, priority }, requests);
      }
    },
  });
  new Gauge({
    name: "evenkeel_held_bytes",
    help: "What the bodies of held requests take in memory.",
    labelNames: ["pool"],
    registers: [registry],
    collect() {
      this.reset();
      for (const { name: pool, balancer } of pools()) this.inc({ pool }, balancer.heldBytes);
    },
  });
  new Gauge({
    name: "evenkeel_leaving_requests",
    help: "Requests that still run at endpoints which were removed.",
    labelNames: ["pool"],
    registers: [registry],
    collect() {
      this.reset();
      for (const { name: pool, leaving } of pools()) this.inc({ pool }, requestsOf(leaving));
      for (const { name: pool, balancer } of runtime.leavingPools) this.inc({ pool }, requestsOf(balancer.members));
    },
  });
}

function requestsOf(endpoints: readonly { readonly account: { readonly requests: number } }[]): number {
  return endpoints.reduce((total, { account }) => total + account.requests, 0);
}
