import type { Member } from "../../core/index.ts";
import type { Runtime, ServedPool } from "../../runtime/index.ts";
import type { Upstreams } from "../upstreams.ts";

/** All pools as the balancer sees them at this moment. */
export function runtimeState({ pools, leavingPools, clock }: Runtime, upstreams: Upstreams): object {
  const nowMs = clock.nowMs();
  return {
    pools: pools.map((pool) => poolState(pool, upstreams, nowMs)),
    leavingPools: leavingPools.map((pool) => poolState(pool, upstreams, nowMs)),
  };
}

function poolState(pool: ServedPool, upstreams: Upstreams, nowMs: number): object {
  return {
    name: pool.name,
    policy: pool.balancer.policyName,
    heldRequests: pool.balancer.heldRequests,
    heldByPriority: pool.balancer.heldByPriority,
    heldBytes: pool.balancer.heldBytes,
    endpoints: pool.balancer.members.map((member) => memberState(pool, member, upstreams, nowMs)),
    leavingEndpoints: pool.leaving.map(({ monitor: { endpoint }, account }) => ({
      id: endpoint.id,
      url: endpoint.url,
      requests: account.requests,
      connections: upstreams.openConnections(pool, endpoint.id),
    })),
  };
}

/** One endpoint; undefined: the pool has none with this id. */
export function endpointState(
  pool: ServedPool,
  endpointId: string,
  upstreams: Upstreams,
  nowMs: number,
): object | undefined {
  const member = pool.balancer.members.find(({ endpoint }) => endpoint.id === endpointId);
  return member && memberState(pool, member, upstreams, nowMs);
}

function memberState(pool: ServedPool, member: Member, upstreams: Upstreams, nowMs: number): object {
  const { endpoint, account, speed, signals, breaker, slowStart } = member;
  return {
    id: endpoint.id,
    url: endpoint.url,
    engine: pool.monitor(endpoint.id).engine,
    availability: member.availability,
    isDraining: member.isDraining,
    breaker: { state: breaker.stateAt(nowMs), openings: breaker.openings },
    warmth: slowStart.warmthAt(nowMs),
    busyMs: Math.max(0, Math.round(member.busyUntilMs - nowMs)),
    weight: endpoint.weight,
    maxRequests: endpoint.maxRequests ?? null,
    models: member.models === undefined ? null : [...member.models],
    connections: upstreams.openConnections(pool, endpoint.id),
    work: {
      requests: account.requests,
      waitingRequests: account.waitingRequests,
      runningRequests: account.runningRequests,
      heldRequests: member.held.requests,
      waitingPrefillTokens: account.waitingPrefillTokens,
      expectedOutputTokens: account.outputTokens,
      contextTokens: account.contextTokens,
    },
    speed: {
      tokensPerSecond: speed.tokensPerSecond,
      isConfigured: endpoint.tokensPerSecond !== undefined,
      samples: speed.samples,
      decodeScale: speed.decodeScale,
      prefillScale: speed.prefillScale,
    },
    kvCapacityTokens: member.kvCapacityTokens ?? null,
    indexedBlocks: member.mirror.size,
    signals: signals ?? null,
  };
}
