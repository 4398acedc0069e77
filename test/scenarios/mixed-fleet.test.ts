import { beforeAll, describe, expect, it } from "vitest";
import { createBalancer, endpoint, policyDefinitions, requestProfile, seededRandom } from "../../src/core/index.ts";
import { tally, times } from "../support/fleet.ts";
import { type Arrival, type Served, serveVirtually } from "../support/virtual-fleet.ts";

/** Two fast endpoints, one of half and one of a quarter of their speed; nobody tells the balancer. */
const SLOWDOWNS = { "fast-1": 1, "fast-2": 1, half: 2, quarter: 4 };

/** Well within what the fleet can do; an equal share of it is more than the slowest endpoint keeps up with. */
const REQUESTS_PER_SECOND = 80;
const REQUESTS = 1200;
const SEEDS = [7, 8];

interface Result {
  readonly p99TtftMs: number;
  readonly meanE2eMs: number;
  readonly counts: Readonly<Record<string, number>>;
}

describe("a fleet of unequal speed under heavy-tailed prompts", () => {
  const results: Record<string, Result> = {};

  beforeAll(() => {
    for (const { name } of policyDefinitions) results[name] = resultOf(SEEDS.flatMap((seed) => serve(name, seed)));
  });

  it.each(["token_aware", "least_delay"])(
    "has a lower p99 time to first token under %s than under rules that count",
    (name) => {
      for (const rule of ["round_robin", "least_connections"]) {
        expect(of(name).p99TtftMs).toBeLessThan(of(rule).p99TtftMs);
        expect(of(name).meanE2eMs).toBeLessThan(of(rule).meanE2eMs);
      }
    },
  );

  it("has its lowest p99 and its fastest answers under the default policy", () => {
    for (const { name } of policyDefinitions) {
      expect(of("least_delay").p99TtftMs).toBeLessThanOrEqual(of(name).p99TtftMs);
      expect(of("least_delay").meanE2eMs).toBeLessThanOrEqual(of(name).meanE2eMs);
    }
  });

  it.each(["least_delay", "token_aware", "session_affinity", "power_of_two", "least_connections"])(
    "sends the slowest endpoint far less than a fast one under %s, without weights",
    (name) => {
      const { quarter = 0, "fast-1": first = 0, "fast-2": second = 0 } = of(name).counts;
      expect(2 * quarter).toBeLessThan(Math.min(first, second));
    },
  );

  function of(name: string): Result {
    const result = results[name];
    if (result === undefined) throw new RangeError(`no policy ${name}`);
    return result;
  }
});

function serve(policy: string, seed: number): Served[] {
  const endpoints = Object.keys(SLOWDOWNS).map((id) => endpoint({ id }));
  const balancer = createBalancer({ policy, endpoints, random: seededRandom(3) });
  const random = seededRandom(seed);
  let atMs = 0;
  const arrivals = times(REQUESTS, (): Arrival => {
    atMs += (-Math.log(1 - random.next()) * 1000) / REQUESTS_PER_SECOND;
    // Pareto: half of the prompts have under 190 tokens, one in 100 over 6,500.
    const promptTokens = Math.min(16_000, Math.ceil(100 * (1 - random.next()) ** (-1 / 1.1)));
    const outputTokens = 4 + Math.floor(-Math.log(1 - random.next()) * 120);
    const key = { model: "m", route: "chat", maxOutputTokens: undefined };
    return {
      atMs,
      outputTokens,
      profile: requestProfile({ ...key, promptTokens, output: balancer.outputLengths.expect(key) }),
    };
  });
  return serveVirtually(balancer, SLOWDOWNS, arrivals);
}

function resultOf(served: readonly Served[]): Result {
  const ttfts = served.map(({ arrivedAtMs, firstTokenAtMs }) => firstTokenAtMs - arrivedAtMs).toSorted((a, b) => a - b);
  const e2eMs = served.reduce((sum, { arrivedAtMs, endedAtMs }) => sum + endedAtMs - arrivedAtMs, 0);
  return {
    p99TtftMs: ttfts[Math.floor(0.99 * ttfts.length)] ?? Number.NaN,
    meanE2eMs: e2eMs / served.length,
    counts: tally(
      served.map(({ endpointId }) => endpointId),
      Object.keys(SLOWDOWNS),
    ),
  };
}
