import { describe, expect, it } from "vitest";
import { Balancer, endpoint, requestProfile, seededRandom } from "../../src/core/index.ts";
import { routedNow } from "../support/decisions.ts";
import { times } from "../support/fleet.ts";

const prompt = requestProfile({
  promptTokens: 4096,
  expectedOutputTokens: 100,
  prefix: { hashes: times(64, (depth) => depth + 1), tokensPerBlock: 64 },
});
const E1 = endpoint({ id: "e1", url: "http://a" });
const E2 = endpoint({ id: "e2", url: "http://b" });

/** Serves the prompt once. @returns by whom. */
function serve(balancer: Balancer, tried: readonly string[] = []): string {
  const { lease, endpoint: chosen } = routedNow(balancer, prompt, 0, tried);
  balancer.firstToken(lease, 100);
  balancer.finish(lease, { kind: "completed", outputTokens: 100 }, 200);
  return chosen.id;
}

/** What the prompt costs on `e1` against `e2`: below 1, it is drawn to `e1`. */
function costRatio(balancer: Balancer): number {
  const { considered } = balancer.explain(prompt, 300).explanation;
  const [e1, e2] = ["e1", "e2"].map((id) => considered.find((each) => each.endpoint === id)?.score ?? Number.NaN);
  return (e1 as number) / (e2 as number);
}

/** Both know the prompt's time, so that neither looks faster; `e1` alone has it cached at the end. */
function warm(): Balancer {
  const balancer = new Balancer({ endpoints: [E1, E2], random: seededRandom(5) });
  balancer.observe({ kind: "restarted", endpointId: serve(balancer, ["e1"]) }, 0);
  serve(balancer, ["e2"]);
  return balancer;
}

describe("an endpoint that has a prompt cached", () => {
  it("gets it again while nobody has more to do", () => {
    const balancer = warm();
    expect(costRatio(balancer)).toBeLessThan(0.9);
    expect(times(10, () => serve(balancer))).toEqual(times(10, () => "e1"));
  });

  it.each<[string, (balancer: Balancer) => void]>([
    [
      "was down",
      (balancer) => {
        balancer.observe({ kind: "availability", endpointId: "e1", availability: "down" }, 0);
        balancer.observe({ kind: "availability", endpointId: "e1", availability: "ready" }, 0);
      },
    ],
    [
      "was loading",
      (balancer) => {
        balancer.observe({ kind: "availability", endpointId: "e1", availability: "loading" }, 0);
        balancer.observe({ kind: "availability", endpointId: "e1", availability: "ready" }, 0);
      },
    ],
    ["restarted, by its counters", (balancer) => balancer.observe({ kind: "restarted", endpointId: "e1" }, 0)],
    [
      "left and came back",
      (balancer) => {
        balancer.setEndpoints([E2], 0);
        balancer.setEndpoints([E1, E2], 0);
      },
    ],
    [
      "is another server under the same name",
      (balancer) => void balancer.setEndpoints([endpoint({ id: "e1", url: "http://c" }), E2], 0),
    ],
  ])("is not drawn to by it any more once it %s", (_, happen) => {
    const balancer = warm();
    happen(balancer);
    expect(costRatio(balancer)).toBeCloseTo(1, 2);
  });
});
