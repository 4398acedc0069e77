import type { HoldOrder, Priority } from "../core/index.ts";
import { TenantCounters } from "./tenant-counters.ts";

const URGENCIES: Readonly<Record<Priority, number>> = { low: 0, normal: 1, high: 2 };

/**
 * Held requests go by priority, which rises while they wait; of one priority by what their tenants got; of one tenant
 * by the policy's key.
 */
export function fairOrder(): HoldOrder {
  const tenants = new TenantCounters();
  return {
    topUrgency: URGENCIES.high,
    urgencyOf: ({ priority }) => URGENCIES[priority],
    tenantOf: ({ tenant }) => tenants.of(tenant),
  };
}
