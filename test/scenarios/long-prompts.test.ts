import { describe, expect, it } from "vitest";
import { Balancer, endpoint, policyDefinitions, requestProfile, seededRandom } from "../../src/core/index.ts";
import { routedNow } from "../support/decisions.ts";
import { times } from "../support/fleet.ts";

const prompt = requestProfile({
  promptTokens: 1_000_000,
  expectedOutputTokens: 100,
  prefix: { hashes: times(8192, (depth) => depth + 1), tokensPerBlock: 64 },
  sessionKey: "s",
});

/** What one decision takes, in ms: the least of several, all of them with the prompt known at some endpoints. */
function decideMs(policy: string, endpoints: number): number {
  const ids = times(endpoints, (i) => `e${i}`);
  const balancer = new Balancer({ policy, endpoints: ids.map((id) => endpoint({ id })), random: seededRandom(1) });
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 8; i++) {
    const startedMs = performance.now();
    const { lease } = routedNow(balancer, prompt, i);
    least = Math.min(least, performance.now() - startedMs);
    balancer.firstToken(lease, i);
    balancer.finish(lease, { kind: "completed", outputTokens: 10 }, i);
  }
  return least;
}

describe("a prompt of a million tokens", () => {
  it.each(policyDefinitions.map(({ name }) => name))(
    "costs a decision over 1000 endpoints no more of each than one over 50, under %s",
    (policy) => {
      decideMs(policy, 50);
      // Twenty times the endpoints; four times that for whatever the machine does besides.
      expect(decideMs(policy, 1000)).toBeLessThan(4 * 20 * decideMs(policy, 50));
    },
  );
});
