import { describe, expect, it } from "vitest";
import { isSyntheticSpec, parseSyntheticSpec } from "./synthetic-spec.ts";

describe("parseSyntheticSpec", () => {
  it("reads every key, commas in brackets included", () => {
    const spec = parseSyntheticSpec(
      "synthetic:rate=10.5,requests=2000,arrivals=gamma(2),in=lognormal(800,1.2),out=uniform(1,9),prefix=4x1000," +
        "turns=5,think=exp(10s),loop=open,seed=7",
    );
    expect(spec).toMatchObject({
      rate: 10.5,
      requests: 2000,
      prefix: { groups: 4, tokens: 1000 },
      turns: 5,
      loop: "open",
      seed: 7,
    });
  });

  it("has a default for every key", () => {
    expect(parseSyntheticSpec("synthetic:")).toMatchObject({
      rate: 1,
      requests: 1000,
      prefix: { groups: 1, tokens: 0 },
      turns: 1,
      loop: "closed",
      seed: 1,
    });
  });

  it.each([
    ["rate=0", 'rate: expected requests per second, above 0; got "0"'],
    ["requests=1.5", 'requests: expected a whole number of at least 1; got "1.5"'],
    ["arrivals=gamma", 'arrivals: expected poisson or gamma(CV); got "gamma"'],
    ["in=normal(1,2)", "in: expected tokens: N, uniform(LOW,HIGH), exp(MEAN), lognormal(MEAN,SIGMA)"],
    ["prefix=0x5", 'prefix: expected GROUPSxTOKENS; got "0x5"'],
    ["think=10", "think: expected times with ms, s, m or h: N, uniform"],
    ["loop=half", 'loop: expected closed or open; got "half"'],
    ["turns", "turns: expected turns=VALUE"],
    ["seed=1,seed=2", "seed: given twice"],
    ["speed=1", '"speed": expected one of rate, requests, arrivals, in, out, prefix, turns, think, loop, seed'],
  ])("says what is allowed instead of %s", (text, message) => {
    expect(() => parseSyntheticSpec(`synthetic:${text}`)).toThrow(message);
  });

  it("names all problems at once", () => {
    expect(() => parseSyntheticSpec("synthetic:rate=x,turns=0,foo=1")).toThrow(/"foo": .*\nrate: .*\nturns: /);
  });
});

describe("isSyntheticSpec", () => {
  it("tells a specification from a file", () => {
    expect(isSyntheticSpec("synthetic:rate=1")).toBe(true);
    expect(isSyntheticSpec("synthetic.jsonl")).toBe(false);
  });
});
