import type { Replication } from "./simulation-options.ts";

/**
 * Every `intervalMs` each balancer tells all others what it has in flight and holds, and what it sent since: in between
 * they know of one another what was said last.
 */
export function exchangeWork(intervalMs: number): Replication {
  return {
    intervalMs,
    exchange(balancers, nowMs) {
      // All are asked before any is told, as messages that cross on their way.
      const shares = balancers.map((balancer) => balancer.share(nowMs));
      return balancers.flatMap((balancer, to) =>
        shares.flatMap((work, from) => (from === to ? [] : balancer.adopt(`replica-${from + 1}`, work, nowMs))),
      );
    },
  };
}
