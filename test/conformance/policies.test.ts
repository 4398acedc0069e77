import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type Balancer,
  createBalancer,
  type Decision,
  endpoint,
  type Lease,
  type PolicyDefinition,
  policyDefinitions,
  type Release,
  type RequestProfile,
  requestProfile,
  seededRandom,
} from "../../src/core/index.ts";
import { anyFleet, anyRequest, fleetIn, mixedFleet, request, snapshot } from "../support/any-fleet.ts";
import { mustBeRouted, routedNow } from "../support/decisions.ts";
import { Fleet, type FleetEndpoint, nonEmpty, tally, times } from "../support/fleet.ts";
import { policyContext } from "../support/policy-context.ts";

/** Policies that score only part of the candidates, and why. */
const SCORES_SOME: Readonly<Record<string, string>> = {
  power_of_two: "compares only the two it drew",
};

/** Options that stand for no value when they are left out, and why. */
const NONE_BY_DEFAULT: Readonly<Record<string, string>> = {
  tpotTargetMs: "a target that nobody declared is none",
};

/** Policies whose choice does not follow the load from one request to the next, and why. */
const IGNORES_BURSTS: Readonly<Record<string, string>> = {
  random: "looks at nothing",
  weighted_random: "draws, in proportion to free capacity",
  power_of_two: "sees two endpoints of three",
};

/** Policies that place a session by its key. */
const HASHES_SESSIONS = ["session_affinity"];

describe.each(policyDefinitions.map((definition) => [definition.name, definition] as const))(
  "%s",
  (name, definition) => {
    const policy = () => definition.create(definition.options.parse({}));

    describe("definition", () => {
      it("says what it does and what its score is", () => {
        expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/);
        expect(definition.summary).not.toBe("");
        expect(definition.score).not.toBe("");
      });

      it("describes, bounds and defaults every option", () => {
        for (const [key, option] of Object.entries(optionsOf(definition))) {
          expect(option.description).toMatch(/\w/);
          if (!(key in NONE_BY_DEFAULT)) expect(option).toHaveProperty("default");
          if (option.type === "number")
            expect(option).toMatchObject({ minimum: expect.any(Number), maximum: expect.any(Number) });
          else if (option.type !== "boolean") expect(option.enum).toBeInstanceOf(Array);
        }
      });

      it("refuses unknown options and values out of bounds", () => {
        expect(definition.options.safeParse({ nonsense: 1 }).success).toBe(false);
        for (const [key, { minimum = 0, maximum = 0 }] of Object.entries(optionsOf(definition))) {
          for (const bad of [minimum - 1, maximum + 1, Number.NaN, Number.POSITIVE_INFINITY, "3", null]) {
            expect(definition.options.safeParse({ [key]: bad }).success).toBe(false);
          }
        }
      });
    });

    describe("choice", () => {
      it("is a candidate, explained by finite scores, and changes nothing, in any state of any fleet", () => {
        fc.assert(
          fc.property(anyFleet, anyRequest, fc.integer(), (states, asked, seed) => {
            const fleet = fleetIn(states);
            const { candidates } = fleet;
            const before = snapshot(fleet);
            const asking = policy();
            const ask = () =>
              asking.choose(asked, candidates, policyContext({ nowMs: 5000, random: seededRandom(seed) }));
            const choice = ask();
            expect(candidates).toContain(choice.chosen);
            expect(choice.reason).not.toBe("");
            const ids = choice.considered.map(({ endpoint }) => endpoint);
            expect(ids).toContain(choice.chosen.endpoint.id);
            if (name in SCORES_SOME) expect(new Set(ids).size).toBe(ids.length);
            else expect(ids).toEqual(candidates.map(({ endpoint }) => endpoint.id));
            for (const { score, terms } of choice.considered) {
              for (const value of [score, ...Object.values(terms ?? {})]) expect(value).toSatisfy(Number.isFinite);
            }
            expect(ask()).toEqual(choice);
            expect(snapshot(fleet)).toEqual(before);
          }),
          { seed: 1, numRuns: 200 },
        );
      });

      it("scores an endpoint the same wherever it is listed", () => {
        const { candidates } = mixedFleet();
        const scores = (order: typeof candidates) => {
          const { considered } = policy().choose(request, order, policyContext());
          return Object.fromEntries(considered.map(({ endpoint, score }) => [endpoint, score]));
        };
        const reversed = nonEmpty(candidates.toReversed());
        if (name in SCORES_SOME) expect(Object.keys(scores(reversed)).length).toBeLessThan(candidates.length);
        else expect(scores(reversed)).toEqual(scores(candidates));
      });

      it("falls equally often on an endpoint wherever it is listed", () => {
        const { candidates } = mixedFleet();
        const counts = (order: typeof candidates) => {
          const asking = policy();
          const context = policyContext({ random: seededRandom(9) });
          return tally(times(4000, () => asking.choose(request, order, context).chosen.endpoint.id));
        };
        const [given, reversed] = [counts(candidates), counts(nonEmpty(candidates.toReversed()))];
        // Difference of two binomials, n = 4000: standard deviation at most 44.7; four of them.
        for (const { endpoint } of candidates) {
          expect(Math.abs((given[endpoint.id] ?? 0) - (reversed[endpoint.id] ?? 0))).toBeLessThan(179);
        }
      });

      it("is the only candidate when there is one", () => {
        const { candidates } = new Fleet([{ id: "only" }]);
        expect(policy().choose(request, candidates, policyContext()).chosen).toBe(candidates[0]);
      });

      it("reaches all of 200 endpoints", () => {
        const ids = times(200, (index) => `e${index}`);
        const balancer = balancerOf(name, nonEmpty(ids.map((id) => ({ id }))));
        const counts = tally(times(3000, () => routeAndEnd(balancer, request)));
        // Binomial, n = 3000, p = 1/200: the chance that any of them draws none is 6e-5.
        expect(Object.keys(counts)).toHaveLength(200);
      });
    });

    describe("behind a balancer", () => {
      it("spreads light traffic evenly over equal endpoints", () => {
        const balancer = balancerOf(name, [{ id: "a" }, { id: "b" }, { id: "c" }]);
        const counts = tally(
          times(300, () => routeAndEnd(balancer, request)),
          ["a", "b", "c"],
        );
        // Binomial, n = 300, p = 1/3: standard deviation 8.2; four of them.
        for (const count of Object.values(counts)) expect(Math.abs(count - 100)).toBeLessThan(33);
      });

      it("spreads the share of an endpoint that is down evenly over the others", () => {
        const ids = ["e1", "e2", "e3", "e4", "e5"] as const;
        const balancer = balancerOf(name, nonEmpty(ids.map((id) => ({ id }))));
        balancer.observe({ kind: "availability", endpointId: "e2", availability: "down" }, 0);
        const counts = tally(
          times(500, () => routeAndEnd(balancer, request)),
          ids,
        );
        expect(counts.e2).toBe(0);
        // Binomial, n = 500, p = 1/4: standard deviation 9.7; four of them.
        for (const id of ["e1", "e3", "e4", "e5"]) expect(Math.abs((counts[id] ?? 0) - 125)).toBeLessThan(39);
      });

      if (!(name in IGNORES_BURSTS)) {
        it("spreads a burst within one instant evenly", () => {
          const balancer = balancerOf(name, [{ id: "a" }, { id: "b" }, { id: "c" }]);
          const counts = tally(times(30, () => route(balancer, request).id));
          expect(counts).toEqual({ a: 10, b: 10, c: 10 });
        });
      }

      it("never goes back to an endpoint that was tried", () => {
        const balancer = balancerOf(name, [{ id: "a" }, { id: "b" }, { id: "c" }]);
        for (const sessionKey of [undefined, ...times(20, (index) => `s${index}`)]) {
          const asked = { ...request, sessionKey };
          const tried: string[] = [];
          times(3, () => tried.push(routeAndEnd(balancer, asked, tried)));
          expect(tried.toSorted()).toEqual(["a", "b", "c"]);
          expect(balancer.decide(asked, 0, tried)).toMatchObject({ kind: "refused", reason: "exhausted" });
        }
      });

      it.each([
        { weights: [0, 0], down: [], tried: [], outcome: "no_endpoint" },
        { weights: [0, 5], down: ["e1"], tried: [], outcome: "unavailable" },
        { weights: [0, 5], down: [], tried: ["e1"], outcome: "exhausted" },
        { weights: [0, 5], down: [], tried: [], outcome: "e1" },
        { weights: [1e308, 1e308], down: [], tried: ["e0"], outcome: "e1" },
        { weights: [1e-300, 1e308], down: [], tried: ["e1"], outcome: "e0" },
      ])(
        "with weights $weights, $down down and $tried tried decides: $outcome",
        ({ weights, down, tried, outcome }) => {
          const balancer = balancerOf(name, nonEmpty(weights.map((weight, index) => ({ id: `e${index}`, weight }))));
          for (const endpointId of down)
            balancer.observe({ kind: "availability", endpointId, availability: "down" }, 0);
          const decision = balancer.decide(request, 0, tried);
          expect(decision.kind === "refused" ? decision.reason : mustBeRouted(decision).endpoint.id).toBe(outcome);
        },
      );

      it("leaves every account at nothing when all requests have ended", () => {
        const balancer = balancerOf(name, [{ id: "a", weight: 3 }, { id: "b", tokensPerSecond: 500 }, { id: "c" }]);
        runTraffic(balancer, 2000);
        expect(balancer.heldRequests).toBe(0);
        for (const { account } of balancer.members) {
          expect(account).toMatchObject({
            requests: 0,
            waitingRequests: 0,
            waitingPrefillTokens: 0,
            waitingPrefillPairs: 0,
            waitingPromptTokens: 0,
            runningRequests: 0,
            contextTokens: 0,
            outputTokens: 0,
          });
        }
      });
      it("explains what it would decide, and moves neither accounts nor turns by it", () => {
        const balancer = balancerOf(name, [{ id: "a" }, { id: "b", weight: 2 }, { id: "c" }]);
        const accounts = () => balancer.members.map(({ account }) => ({ ...account }));
        for (const sessionKey of times(20, (index) => `s${index}`)) {
          const asked = { ...request, sessionKey };
          const before = accounts();
          const [first, again] = times(2, () => balancer.explain(asked, 0));
          expect(again).toEqual(first);
          expect(accounts()).toEqual(before);
          const decision = balancer.decide(asked, 0);
          expect(decision).toMatchObject({ endpoint: first?.chosen, explanation: first?.explanation });
        }
      });
    });

    if (!HASHES_SESSIONS.includes(name)) return;
    describe("sessions", () => {
      const keys = times(1000, (index) => `conversation-${index}`);
      const five: FleetEndpoint[] = times(5, (index) => ({ id: `e${index}` }));
      const placed = (balancer: Balancer) =>
        keys.map((sessionKey) => routeAndEnd(balancer, { ...request, sessionKey }));

      it("stay where they are while another endpoint is out, and return when theirs comes back", () => {
        const balancer = balancerOf(name, nonEmpty(five));
        const before = placed(balancer);
        balancer.observe({ kind: "availability", endpointId: "e3", availability: "down" }, 0);
        const during = placed(balancer);
        before.forEach((id, index) => {
          if (id === "e3") expect(during[index]).not.toBe("e3");
          else expect(during[index]).toBe(id);
        });
        balancer.observe({ kind: "availability", endpointId: "e3", availability: "ready" }, 0);
        expect(placed(balancer)).toEqual(before);
      });

      it("land on the same endpoint behind every balancer, whatever order the endpoints are listed in", () => {
        const here = placed(balancerOf(name, nonEmpty(five), 1));
        expect(placed(balancerOf(name, nonEmpty(five.toReversed()), 2))).toEqual(here);
      });

      it("move only to a new endpoint, and at once", () => {
        const balancer = balancerOf(name, nonEmpty(five));
        const before = placed(balancer);
        balancer.setEndpoints([...five, { id: "e5" }].map(endpoint), 0);
        const moved = placed(balancer).filter((id, index) => id !== before[index]);
        expect(new Set(moved)).toEqual(new Set(["e5"]));
        // Binomial, n = 1000, p = 1/6: standard deviation 11.8; four of them.
        expect(Math.abs(moved.length - 1000 / 6)).toBeLessThan(48);
      });
    });
  },
);

interface OptionSchema {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
}

function optionsOf(definition: PolicyDefinition): Record<string, OptionSchema> {
  const schema = z.toJSONSchema(definition.options) as { readonly properties?: Record<string, OptionSchema> };
  return schema.properties ?? {};
}

function balancerOf(policy: string, endpoints: readonly [FleetEndpoint, ...FleetEndpoint[]], seed = 1): Balancer {
  return createBalancer({ policy, endpoints: endpoints.map(endpoint), random: seededRandom(seed) });
}

function route(
  balancer: Balancer,
  asked: RequestProfile,
  { nowMs = 0, tried = [] }: { readonly nowMs?: number; readonly tried?: readonly string[] } = {},
): { readonly id: string; readonly lease: Lease } {
  const { endpoint, lease } = routedNow(balancer, asked, nowMs, tried);
  return { id: endpoint.id, lease };
}

/** One request after the other: nothing is in flight when the next comes. */
function routeAndEnd(balancer: Balancer, asked: RequestProfile, tried: readonly string[] = []): string {
  const { id, lease } = route(balancer, asked, { tried });
  balancer.finish(lease, { kind: "aborted" }, 0);
  return id;
}

/** Requests that begin, stream and end in a seeded muddle; all have ended when it returns, those held among them. */
function runTraffic(balancer: Balancer, events: number): void {
  const random = seededRandom(11);
  const open: Lease[] = [];
  const send = (decision: Decision) => {
    if (decision.kind === "routed") open.push(decision.lease);
  };
  const release = (releases: readonly Release[]) => {
    for (const { decision } of releases) send(decision);
  };
  for (let nowMs = 0; nowMs < events; nowMs++) {
    const lease = open[Math.floor(random.next() * open.length)];
    const draw = random.next();
    if (lease === undefined || draw < 0.25) {
      const promptTokens = Math.floor(random.next() * 3000);
      const sessionKey = random.next() < 0.5 ? undefined : `s${Math.floor(random.next() * 20)}`;
      send(balancer.decide(requestProfile({ promptTokens, sessionKey }), nowMs));
    } else if (draw < 0.5) release(balancer.firstToken(lease, nowMs));
    else if (draw < 0.75) balancer.progress(lease, 1 + Math.floor(random.next() * 300), nowMs);
    else {
      const kind = draw < 0.9 ? "completed" : "failed";
      release(balancer.finish(lease, { kind, outputTokens: lease.generatedTokens }, nowMs));
    }
  }
  for (let lease = open.pop(); lease !== undefined; lease = open.pop()) {
    release(balancer.finish(lease, { kind: "aborted" }, events));
  }
}
