import type { Priority } from "../../core/index.ts";
import { type AdminAnswer, isGood, json } from "./admin-answer.ts";
import type { Together } from "./admin-task.ts";
import type { RemovedEndpoint } from "./endpoint-changes.ts";
import type { EndpointState, LeavingState, PoolState, RuntimeState, WorkState } from "./pool-state.ts";

type Several<Value> = readonly [Value, ...Value[]];

/** Whether all live: one that does not answer is told of. */
export const allAlive: Together = (answers) => answers.find((answer) => !isGood(answer)) ?? answers[0];

/** Whether requests may come: one that has just begun, and not found its endpoints yet, takes nothing away. */
export const anyReady: Together = (answers) => answers.find(isGood) ?? answers[0];

/** `GET /admin/endpoints`. */
export const runtimeTogether: Together = pageOf(
  (states: Several<RuntimeState>): RuntimeState => ({
    pools: poolsTogether(states.map(({ pools }) => pools)),
    leavingPools: poolsTogether(states.map(({ leavingPools }) => leavingPools)),
  }),
);

/** One endpoint. */
export const endpointTogether: Together = pageOf(endpointStateOf);

/** What a removal is answered. */
export const removalTogether: Together = pageOf(
  (all: Several<RemovedEndpoint>): RemovedEndpoint => ({
    ...all[0],
    requests: sumOf(all, ({ requests }) => requests),
  }),
);

/** One page of theirs, with the status of the first. Who refuses has not seen yet what the others have: he is left out. */
function pageOf<State>(together: (states: Several<State>) => State): Together {
  return (answers) => {
    const [first, ...others] = answers.filter(isGood);
    if (first === undefined) return answers[0];
    const read = ({ body }: AdminAnswer): State => JSON.parse(body) as State;
    return json(first.status, together([read(first), ...others.map(read)]));
  };
}

function poolsTogether(lists: readonly (readonly PoolState[])[]): readonly PoolState[] {
  return byName(lists, ({ name }) => name).map((pools) => {
    const priorities = Object.keys(pools[0].heldByPriority) as Priority[];
    return {
      ...pools[0],
      heldRequests: sumOf(pools, ({ heldRequests }) => heldRequests),
      heldBytes: sumOf(pools, ({ heldBytes }) => heldBytes),
      heldByPriority: sums(
        priorities,
        pools.map(({ heldByPriority }) => heldByPriority),
      ),
      endpoints: byName(
        pools.map(({ endpoints }) => endpoints),
        ({ id }) => id,
      ).map(endpointStateOf),
      leavingEndpoints: byName(
        pools.map(({ leavingEndpoints }) => leavingEndpoints),
        ({ id }) => id,
      ).map(leavingOf),
    };
  });
}

function leavingOf(all: Several<LeavingState>): LeavingState {
  return { ...all[0], ...sums(["requests", "connections"], all) };
}

/** Work adds up. Of what each believes, the worst is shown: it keeps a part of the requests away. */
function endpointStateOf(all: Several<EndpointState>): EndpointState {
  const [first] = all;
  return {
    ...first,
    availability: all.find(({ availability }) => availability !== "ready")?.availability ?? first.availability,
    isDraining: all.some(({ isDraining }) => isDraining),
    breaker: {
      state: BREAKER_STATES.find((state) => all.some(({ breaker }) => breaker.state === state)) ?? "closed",
      openings: sumOf(all, ({ breaker }) => breaker.openings),
    },
    warmth: Math.min(...all.map(({ warmth }) => warmth)),
    busyMs: Math.max(...all.map(({ busyMs }) => busyMs)),
    connections: sumOf(all, ({ connections }) => connections),
    work: sums(
      Object.keys(first.work) as (keyof WorkState)[],
      all.map(({ work }) => work),
    ),
  };
}

/** The worst first. */
const BREAKER_STATES = ["open", "half_open", "closed"] as const;

/** Entries of several lists that have the same name, names in the order in which they first come. */
function byName<Entry>(lists: readonly (readonly Entry[])[], nameOf: (entry: Entry) => string): Several<Entry>[] {
  const found = new Map<string, [Entry, ...Entry[]]>();
  for (const entry of lists.flat()) {
    const same = found.get(nameOf(entry));
    if (same === undefined) found.set(nameOf(entry), [entry]);
    else same.push(entry);
  }
  return [...found.values()];
}

function sums<Name extends string>(
  names: readonly Name[],
  all: readonly Readonly<Record<Name, number>>[],
): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, sumOf(all, (each) => each[name])])) as Record<Name, number>;
}

function sumOf<Value>(all: readonly Value[], numberOf: (value: Value) => number): number {
  return all.reduce((sum, value) => sum + numberOf(value), 0);
}
