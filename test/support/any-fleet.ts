import fc from "fast-check";
import { PrefixHasher, type RequestProfile, requestProfile } from "../../src/core/index.ts";
import { Fleet, type FleetEndpoint, nonEmpty, times } from "./fleet.ts";

/** An ordinary chat. */
export const request = requestProfile({ promptTokens: 200, expectedOutputTokens: 100 });

/** One endpoint and what is in flight on it. */
export interface EndpointState extends FleetEndpoint {
  readonly running: number;
  readonly waiting: number;
}

/** Any size, with a prefix or without. */
export const anyRequest: fc.Arbitrary<RequestProfile> = fc
  .record({
    promptTokens: fc.constantFrom(0, 1, 200, 9000, 2_000_000),
    expectedOutputTokens: fc.constantFrom(0, 1, 300, 2_000_000),
    sessionKey: fc.option(fc.string({ minLength: 1 }), { nil: undefined }),
    text: fc.option(fc.constantFrom("short", "once upon a time ".repeat(100)), { nil: undefined }),
  })
  .map(({ text, ...known }) => requestProfile({ ...known, prefix: text === undefined ? undefined : prefixOf(text) }));

/** Fleets of one to eight endpoints in any state. */
export const anyFleet: fc.Arbitrary<EndpointState[]> = fc.array(
  fc.record({
    id: fc.constant(""),
    weight: fc.constantFrom(1e-300, 0.1, 1, 7, 1e308),
    tokensPerSecond: fc.constantFrom(undefined, 1, 3600, 1e9),
    kvCapacityTokens: fc.constantFrom(undefined, 1000, 467_000),
    running: fc.nat({ max: 20 }),
    waiting: fc.nat({ max: 5 }),
  }),
  { minLength: 1, maxLength: 8 },
);

/** A fleet in these states; ids are e0, e1, ... */
export function fleetIn(states: readonly EndpointState[]): Fleet {
  const named = states.map((state, index) => ({ ...state, id: `e${index}` }));
  const fleet = new Fleet(nonEmpty(named));
  const cached = { ...request, prefix: prefixOf("once upon a time ".repeat(100)) };
  for (const { id, running, waiting } of named) {
    times(running, (index) => fleet.run(id, index % 2 === 0 ? cached : request, 10 * index));
    times(waiting, (index) => fleet.send(id, request, 1000 + index));
  }
  return fleet;
}

/** Endpoints that differ in every way that a policy may look at. */
export function mixedFleet(): Fleet {
  return fleetIn([
    { id: "", running: 3, waiting: 0 },
    { id: "", running: 1, waiting: 1, weight: 2 },
    { id: "", running: 1, waiting: 1, weight: 2 },
    { id: "", running: 9, waiting: 2, tokensPerSecond: 9000 },
    { id: "", running: 0, waiting: 4, kvCapacityTokens: 20_000 },
  ]);
}

function prefixOf(text: string): RequestProfile["prefix"] {
  const hasher = new PrefixHasher(["model"]);
  hasher.update(text);
  return hasher.finish(200);
}

/** What must not change by being asked. */
export function snapshot(fleet: Fleet): unknown {
  return fleet.candidates.map(({ account, speed }) => ({ ...account, samples: speed.samples }));
}
