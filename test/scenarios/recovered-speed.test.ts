import { describe, expect, it } from "vitest";
import { Balancer, endpoint, requestProfile, seededRandom } from "../../src/core/index.ts";
import { routedNow } from "../support/decisions.ts";

const TOKENS = 100;
const PROMPT_TOKENS = 400;

/** Sends `requests` one after the other and streams each at its endpoint's pace; returns how many went to `b`. */
class LightTraffic {
  readonly #balancer: Balancer;
  #nowMs = 0;

  constructor(policy: string) {
    const endpoints = [endpoint({ id: "a" }), endpoint({ id: "b" })];
    this.#balancer = new Balancer({ policy, endpoints, random: seededRandom(7) });
  }

  send(requests: number, stepMs: Readonly<Record<string, number>>): number {
    let toB = 0;
    for (let i = 0; i < requests; i++) {
      const request = requestProfile({ promptTokens: PROMPT_TOKENS, expectedOutputTokens: TOKENS });
      const { lease, endpoint: chosen } = routedNow(this.#balancer, request, this.#nowMs);
      const paceMs = stepMs[chosen.id] ?? 0;
      this.#nowMs += 2 * paceMs;
      this.#balancer.firstToken(lease, this.#nowMs);
      for (let token = 1; token < TOKENS; token++) {
        this.#nowMs += paceMs;
        this.#balancer.progress(lease, 1, this.#nowMs);
      }
      this.#balancer.finish(lease, { kind: "completed", outputTokens: TOKENS }, this.#nowMs);
      if (chosen.id === "b") toB++;
    }
    return toB;
  }
}

describe.each(["least_delay", "token_aware", "power_of_two"])("under %s", (policy) => {
  it("an endpoint that was slow once and is now the fastest gets most of light traffic again", () => {
    const traffic = new LightTraffic(policy);
    traffic.send(200, { a: 20, b: 20 });
    const whileSlow = traffic.send(1000, { a: 20, b: 200 });
    expect(whileSlow).toBeLessThan(500);
    traffic.send(3000, { a: 20, b: 10 });
    expect(traffic.send(400, { a: 20, b: 10 })).toBeGreaterThan(200);
  });
});
