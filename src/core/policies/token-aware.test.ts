import { describe, expect, it } from "vitest";
import { Fleet, times } from "../../../test/support/fleet.ts";
import { policyContext } from "../../../test/support/policy-context.ts";
import { PrefixHasher } from "../prefix-hash.ts";
import { type RequestProfile, requestProfile } from "../request.ts";
import { tokenAware } from "./token-aware.ts";

const perSecond = { horizonSeconds: 1 };

describe("token_aware", () => {
  it("weighs tokens to prefill by 0.1 and tokens to decode by 1, over capacity and horizon", () => {
    const fleet = new Fleet([{ id: "a", tokensPerSecond: 1000 }]);
    fleet.send("a", requestProfile({ promptTokens: 1000, expectedOutputTokens: 600 }));
    const request = requestProfile({ promptTokens: 500, expectedOutputTokens: 50 });
    const [considered] = choose(fleet, request, perSecond).considered;
    expect(considered?.terms).toEqual({ load: 0.7 });
    expect(considered?.score).toBeCloseTo(0.8);
    expect(choose(fleet, request, { horizonSeconds: 10 }).considered[0]?.score).toBeCloseTo(0.08);
    expect(
      choose(fleet, request, { ...perSecond, prefillWeight: 0, decodeWeight: 2 }).considered[0]?.score,
    ).toBeCloseTo(1.3);
  });

  it("takes prefill off at the first token and output off as it flows", () => {
    const fleet = new Fleet([{ id: "a", tokensPerSecond: 1000 }]);
    const lease = fleet.send("a", requestProfile({ promptTokens: 1000, expectedOutputTokens: 600 }));
    lease.firstToken(10);
    lease.progress(99, 20);
    const request = requestProfile({ promptTokens: 0, expectedOutputTokens: 0 });
    expect(choose(fleet, request, perSecond).considered[0]?.score).toBe(0.5);
  });

  it("compares the load after adding: at equal loads the larger capacity wins", () => {
    const fleet = new Fleet([
      { id: "small", tokensPerSecond: 1000 },
      { id: "large", tokensPerSecond: 4000 },
    ]);
    fleet.send("small", requestProfile({ promptTokens: 0, expectedOutputTokens: 500 }));
    fleet.send("large", requestProfile({ promptTokens: 0, expectedOutputTokens: 2000 }));
    expect(choose(fleet, requestProfile({ promptTokens: 100 }), perSecond).chosen.endpoint.id).toBe("large");
  });

  it("counts only the prompt tokens an endpoint does not have in its cache", () => {
    const fleet = new Fleet([
      { id: "cold", tokensPerSecond: 1000 },
      { id: "warm", tokensPerSecond: 1000 },
    ]);
    const conversation = withPrefix("once upon a time ".repeat(1000), 4000);
    fleet.run("warm", conversation).close(0);
    const { considered, chosen } = choose(fleet, conversation, perSecond);
    expect(chosen.endpoint.id).toBe("warm");
    expect((considered[0]?.score ?? 0) - (considered[1]?.score ?? 0)).toBeGreaterThan(0.38);
  });

  it("has no room at the line and above, whatever the request", () => {
    const fleet = new Fleet([{ id: "a", tokensPerSecond: 1000 }]);
    const policy = tokenAware.create(tokenAware.options.parse(perSecond));
    const hasRoom = () =>
      policy.hasRoom?.(requestProfile({ promptTokens: 10 }), fleet.candidate("a"), fleet.candidates);
    fleet.send("a", requestProfile({ promptTokens: 0, expectedOutputTokens: 949 }));
    expect(hasRoom()).toBe(true);
    fleet.send("a", requestProfile({ promptTokens: 10, expectedOutputTokens: 0 }));
    expect(hasRoom()).toBe(false);
  });

  it("has room on an engine that is full of chat but not overrun, with the default horizon", () => {
    // 350 conversations of 1,300 tokens fill the KV cache of an 8B model on one H100.
    const fleet = new Fleet([{ id: "a", tokensPerSecond: 3600 }]);
    times(350, () => fleet.run("a", requestProfile({ promptTokens: 1200, expectedOutputTokens: 200 })));
    const policy = tokenAware.create(tokenAware.options.parse({}));
    expect(policy.hasRoom?.(requestProfile({ promptTokens: 1200 }), fleet.candidate("a"), fleet.candidates)).toBe(true);
  });
});

function choose(fleet: Fleet, request: RequestProfile, options: unknown) {
  const policy = tokenAware.create(tokenAware.options.parse(options));
  return policy.choose(request, fleet.candidates, policyContext());
}

function withPrefix(text: string, promptTokens: number): RequestProfile {
  const hasher = new PrefixHasher(["model"]);
  hasher.update(text);
  return requestProfile({ promptTokens, expectedOutputTokens: 10, prefix: hasher.finish(promptTokens) });
}
