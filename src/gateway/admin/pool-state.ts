import type { Availability, BreakerState, EngineSignals, Member, Priority } from "../../core/index.ts";
import type { Runtime, ServedPool } from "../../runtime/index.ts";
import type { Upstreams } from "../upstream/upstreams.ts";

/** All pools as the balancer sees them at a moment. */
export interface RuntimeState {
  readonly pools: readonly PoolState[];
  readonly leavingPools: readonly PoolState[];
}

export interface PoolState {
  readonly name: string;
  readonly policy: string;
  readonly heldRequests: number;
  readonly heldByPriority: Readonly<Record<Priority, number>>;
  readonly heldBytes: number;
  readonly endpoints: readonly EndpointState[];
  readonly leavingEndpoints: readonly LeavingState[];
}

/** An endpoint that left its pool, and what still runs there. */
export interface LeavingState {
  readonly id: string;
  readonly url: string;
  readonly requests: number;
  readonly connections: number;
}

export interface EndpointState {
  readonly id: string;
  readonly url: string;
  readonly engine: string;
  readonly availability: Availability;
  readonly isDraining: boolean;
  readonly breaker: { readonly state: BreakerState; readonly openings: number };
  readonly warmth: number;
  readonly busyMs: number;
  readonly weight: number;
  readonly maxRequests: number | null;
  readonly models: readonly string[] | null;
  readonly connections: number;
  readonly work: WorkState;
  readonly speed: object;
  readonly kvCapacityTokens: number | null;
  readonly indexedBlocks: number;
  readonly signals: EngineSignals | null;
}

/** What this process has in flight and holds; that of others who share the endpoint is theirs to tell. */
export interface WorkState {
  readonly requests: number;
  readonly waitingRequests: number;
  readonly runningRequests: number;
  readonly heldRequests: number;
  readonly waitingPrefillTokens: number;
  readonly expectedOutputTokens: number;
  readonly contextTokens: number;
}

export function runtimeState({ pools, leavingPools, clock }: Runtime, upstreams: Upstreams): RuntimeState {
  const nowMs = clock.nowMs();
  return {
    pools: pools.map((pool) => poolState(pool, upstreams, nowMs)),
    leavingPools: leavingPools.map((pool) => poolState(pool, upstreams, nowMs)),
  };
}

function poolState(pool: ServedPool, upstreams: Upstreams, nowMs: number): PoolState {
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
): EndpointState | undefined {
  const member = pool.balancer.members.find(({ endpoint }) => endpoint.id === endpointId);
  return member && memberState(pool, member, upstreams, nowMs);
}

function memberState(pool: ServedPool, member: Member, upstreams: Upstreams, nowMs: number): EndpointState {
  const { endpoint, speed, signals, breaker, slowStart } = member;
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
    work: workState(member, nowMs),
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

function workState({ account, held }: Member, nowMs: number): WorkState {
  const own = account.own(nowMs);
  return {
    requests: own.requests,
    waitingRequests: own.waitingRequests,
    runningRequests: own.runningRequests,
    heldRequests: held.own(nowMs).requests,
    waitingPrefillTokens: own.waitingPrefillTokens,
    expectedOutputTokens: own.outputTokens,
    contextTokens: own.contextTokens,
  };
}
