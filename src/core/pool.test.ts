import { describe, expect, it } from "vitest";
import { engineSignals } from "../../test/support/engine-signals.ts";
import { emptyPool } from "../../test/support/fleet.ts";
import { costOf } from "./cost.ts";
import type { Exclusion, RefusalReason } from "./decision.ts";
import { refusalOf } from "./eligibility.ts";
import { type Endpoint, type EngineSignals, endpoint } from "./endpoint.ts";
import { PRIOR_COEFFICIENTS } from "./engine-coefficients.ts";
import { Ledger } from "./ledger.ts";
import type { Member } from "./member.ts";
import type { Pool } from "./pool.ts";
import { requestProfile } from "./request.ts";

const REQUEST = requestProfile({ promptTokens: 100, model: "m" });

function poolOf(...endpoints: (Pick<Endpoint, "id"> & Partial<Endpoint>)[]): Pool {
  const pool = emptyPool();
  pool.setEndpoints(endpoints.map(endpoint));
  return pool;
}

function member(pool: Pool, id: string): Member {
  const found = pool.member(id);
  if (found === undefined) throw new RangeError(id);
  return found;
}

const prefix = { hashes: [1, 2, 3, 4], tokensPerBlock: 64 };

/** `prefix` was computed there, and its request is over. */
function fill({ mirror }: Member): void {
  mirror.leave(mirror.enter(prefix, 256, 0), 0, true, 0);
}

describe("membership", () => {
  it("keeps the order given and finds members by id", () => {
    const pool = poolOf({ id: "b" }, { id: "a" });
    expect(pool.members.map(({ endpoint: { id } }) => id)).toEqual(["b", "a"]);
    expect(pool.member("a")).toBe(pool.members[1]);
    expect(pool.member("c")).toBeUndefined();
  });

  it("keeps all that was learned of an endpoint that stays, and takes its new facts", () => {
    const pool = poolOf({ id: "a", tokensPerSecond: 100 }, { id: "b" });
    const kept = member(pool, "a");
    fill(kept);
    pool.setEndpoints([endpoint({ id: "c" }), endpoint({ id: "a", weight: 3, tokensPerSecond: 200 })]);
    expect(member(pool, "a")).toBe(kept);
    expect(kept.endpoint.weight).toBe(3);
    expect(kept.speed.tokensPerSecond).toBe(200);
    expect(kept.mirror.size).toBe(4);
    pool.setEndpoints([endpoint({ id: "a", kvCapacityTokens: 128 })]);
    kept.mirror.trim(0);
    expect(kept.mirror.size).toBe(2);
  });

  it("takes an endpoint that returns while its old work runs for what it was, but for its cache and its drain", () => {
    const ledger = new Ledger();
    const pool = emptyPool(ledger);
    pool.setEndpoints([endpoint({ id: "a" })]);
    const before = member(pool, "a");
    fill(before);
    before.isDraining = true;
    ledger.open("a", costOf(REQUEST, 0), REQUEST.output, 0);
    pool.setEndpoints([]);
    pool.setEndpoints([endpoint({ id: "a" })]);
    const after = member(pool, "a");
    expect(after.mirror.size).toBe(0);
    expect(after.isDraining).toBe(false);
    expect(after).toBe(before);
    expect(after.account.requests).toBe(1);
  });

  it("takes an id that moved to another URL for another server", () => {
    const pool = poolOf({ id: "a", url: "http://one" });
    const before = member(pool, "a");
    fill(before);
    before.availability = "down";
    pool.setEndpoints([endpoint({ id: "a", url: "http://two" })]);
    expect(member(pool, "a").mirror.size).toBe(0);
    expect(member(pool, "a").availability).toBe("unknown");
  });

  it.each([
    ["left", [{ id: "slow" }]],
    ["became another server", [{ id: "slow" }, { id: "fast", url: "http://new" }]],
  ])("believes nothing more of a newcomer because of an endpoint that %s", (_, endpoints) => {
    const pool = poolOf({ id: "slow" }, { id: "fast" });
    const stretch = { tokens: 10, sequences: 1, contextTokens: 1, prefillTokens: 0, prefillPairs: 0, prefillSteps: 0 };
    const slowMs = 100 * member(pool, "slow").speed.decodeStepMs(1, 1);
    for (let i = 0; i < 20; i++) {
      member(pool, "fast").speed.observeDecode(stretch, slowMs / 20);
      member(pool, "slow").speed.observeDecode(stretch, slowMs);
    }
    pool.setEndpoints([...endpoints, { id: "newcomer" }].map(endpoint));
    expect(member(pool, "newcomer").speed.decodeScale).toBeCloseTo(10, 6);
  });

  it("refuses two endpoints of one id and stays as it was", () => {
    const pool = poolOf({ id: "a" });
    expect(() => pool.setEndpoints([endpoint({ id: "b" }), endpoint({ id: "b" })])).toThrow('the id "b"');
    expect(pool.members.map(({ endpoint: { id } }) => id)).toEqual(["a"]);
  });
});

describe("a member", () => {
  it("has coefficients at hand that are up to date whenever it is asked who may take a request", () => {
    const pool = poolOf({ id: "a" }, { id: "b" });
    const [one, other] = pool.members as [Member, Member];
    one.speed.configure(1);
    pool.eligible(REQUEST, [], {}, 0);
    // Not `speed.coefficients`: whoever asks for those brings them up to date.
    expect(one.coefficients.weightsMs).toBeGreaterThan(2 * PRIOR_COEFFICIENTS.weightsMs);
    expect(other.coefficients.weightsMs).toBe(PRIOR_COEFFICIENTS.weightsMs);
  });

  it("has the KV capacity that is configured, else the one reported last, else none", () => {
    const pool = poolOf({ id: "a", kvCapacityTokens: 1000 }, { id: "b" });
    const capacities = () => pool.members.map(({ kvCapacityTokens }) => kvCapacityTokens);
    expect(capacities()).toEqual([1000, undefined]);
    for (const each of pool.members) each.report(engineSignals({ kvCapacityTokens: 500 }));
    expect(capacities()).toEqual([1000, 500]);
    pool.setEndpoints([endpoint({ id: "a" }), endpoint({ id: "b", kvCapacityTokens: 2000 })]);
    expect(capacities()).toEqual([500, 2000]);
    for (const each of pool.members) each.report(engineSignals({}));
    expect(capacities()).toEqual([500, 2000]);
  });

  it("has requests whose last blocks are half empty, of the size that was reported last", () => {
    const ledger = new Ledger();
    const pool = emptyPool(ledger);
    pool.setEndpoints([endpoint({ id: "a" })]);
    ledger.open("a", costOf(REQUEST, 0), REQUEST.output, 0);
    const kvTokensAfter = (signals: Partial<EngineSignals>) => {
      member(pool, "a").report(engineSignals(signals));
      return member(pool, "a").kvTokens;
    };
    expect(member(pool, "a").kvTokens).toBe(100 + 8);
    expect(kvTokensAfter({ kvBlockTokens: 64 })).toBe(100 + 32);
    expect(kvTokensAfter({})).toBe(100 + 32);
  });

  it.each([
    [undefined, 1000, 0],
    [{ ...prefix, tokensPerBlock: 50 }, 230, 200],
    // The last token of a prompt is computed, whatever is cached.
    [prefix, 256, 255],
    [prefix, 0, 0],
  ])("of prefix %j in a prompt of %d tokens believes %d cached", (asked, promptTokens, expected) => {
    const pool = poolOf({ id: "a" });
    fill(member(pool, "a"));
    expect(member(pool, "a").cachedTokens({ ...REQUEST, prefix: asked, promptTokens })).toBe(expected);
  });
});

describe("who may take a request", () => {
  it.each<[string, Partial<Member>, Exclusion | undefined]>([
    ["is not known yet", {}, undefined],
    ["is ready", { availability: "ready" }, undefined],
    ["is down", { availability: "down" }, "down"],
    ["is loading", { availability: "loading" }, "loading"],
    ["refuses our key", { availability: "auth_failed" }, "auth_failed"],
    ["drains", { isDraining: true }, "draining"],
    ["has weight 0", { endpoint: endpoint({ id: "a", weight: 0 }) }, "weight_zero"],
    ["serves the model", { models: new Set(["m", "n"]) }, undefined],
    ["serves other models", { models: new Set(["n"]) }, "model_not_served"],
    ["serves other models and is down", { models: new Set(["n"]), availability: "down" }, "model_not_served"],
  ])("an endpoint that %s", (_, state, why) => {
    const pool = poolOf({ id: "a" });
    Object.assign(member(pool, "a"), state);
    const { members, excluded } = pool.eligible(REQUEST, [], {}, 0);
    expect(members).toHaveLength(why === undefined ? 1 : 0);
    expect(excluded).toEqual(why === undefined ? [] : [{ endpoint: "a", why }]);
  });

  it("any endpoint, when the request names no model", () => {
    const pool = poolOf({ id: "a" });
    member(pool, "a").models = new Set(["n"]);
    expect(pool.eligible({ ...REQUEST, model: "" }, [], {}, 0).members).toHaveLength(1);
  });

  it("those who may by now, whatever was answered before", () => {
    const pool = emptyPool();
    pool.setEndpoints([{ id: "a" }, { id: "b" }].map(endpoint));
    const [a, b] = [member(pool, "a"), member(pool, "b")];
    const lease = () => new Ledger().open("a", costOf(REQUEST, 0), REQUEST.output, 0);
    const able = (nowMs: number) => pool.eligible(REQUEST, [], {}, nowMs).members.map(({ endpoint: { id } }) => id);
    const steps: [() => unknown, string[]][] = [
      [() => pool.setModels(a, new Set(["n"])), ["b"]],
      [() => pool.setModels(a, undefined), ["a", "b"]],
      [() => pool.setDraining(b, true, 0), ["a"]],
      [() => pool.setDraining(b, false, 0), ["a", "b"]],
      [() => pool.setAvailability(a, "down", 0), ["b"]],
      [() => pool.setAvailability(a, "ready", 0), ["a", "b"]],
      [() => pool.refused(a, lease(), 500, 0), ["b"]],
      [() => pool.setEndpoints([{ id: "b" }, { id: "c" }].map(endpoint)), ["b", "c"]],
    ];
    for (const [change, expected] of steps) {
      able(0);
      change();
      expect(able(0)).toEqual(expected);
    }
  });

  it("again whoever was busy or ejected, as soon as the time has come", () => {
    const pool = emptyPool();
    pool.configure({ ejection: { failures: 1, baseMs: 1000 } }, 0);
    pool.setEndpoints([{ id: "a" }, { id: "b" }].map(endpoint));
    const [a, b] = [member(pool, "a"), member(pool, "b")];
    const lease = new Ledger().open("a", costOf(REQUEST, 0), REQUEST.output, 0);
    const able = (nowMs: number) => pool.eligible(REQUEST, [], {}, nowMs).members.map(({ endpoint: { id } }) => id);
    expect(able(0)).toEqual(["a", "b"]);
    a.breaker.began(lease, 0);
    expect(pool.failed(a, lease, 0)).toBe(true);
    expect([able(0), able(999), able(1000)]).toEqual([["b"], ["b"], ["a", "b"]]);
    const trial = new Ledger().open("a", costOf(REQUEST, 0), REQUEST.output, 1000);
    a.breaker.began(trial, 1000);
    expect(able(1001)).toEqual(["b"]);
    expect(pool.succeeded(a, trial, 1002)).toBe(true);
    expect(able(1002)).toEqual(["a", "b"]);
    pool.refused(b, lease, 500, 2000);
    expect([able(2000), able(2499), able(2500)]).toEqual([["a"], ["a"], ["a", "b"]]);
  });

  it("neither those that were tried nor those the policy has no room on, in that order", () => {
    const pool = poolOf({ id: "a" }, { id: "b" }, { id: "c" });
    const { members, excluded } = pool.eligible(
      REQUEST,
      ["a"],
      {
        hasRoom: (_, { endpoint: { id } }) => id === "c",
      },
      0,
    );
    expect(members.map(({ endpoint: { id } }) => id)).toEqual(["c"]);
    expect(excluded).toEqual([
      { endpoint: "a", why: "tried" },
      { endpoint: "b", why: "no_room" },
    ]);
  });
});

describe("an endpoint's numbers", () => {
  it.each([
    [{ weight: -1 }, "weight"],
    [{ weight: Number.NaN }, "weight"],
    [{ weight: Number.POSITIVE_INFINITY }, "weight"],
    [{ tokensPerSecond: 0 }, "tokensPerSecond"],
    [{ tokensPerSecond: Number.NaN }, "tokensPerSecond"],
    [{ kvCapacityTokens: -5 }, "kvCapacityTokens"],
    [{ maxRequests: 0 }, "maxRequests"],
  ])("are refused with their name when they are %j", (facts, name) => {
    expect(() => poolOf({ id: "a" }, { id: "gpu-1", ...facts })).toThrow(`endpoint "gpu-1": ${name} must be`);
  });
});

describe("refusalOf", () => {
  it.each<[Exclusion[], RefusalReason]>([
    [[], "no_endpoint"],
    [["weight_zero"], "no_endpoint"],
    [["draining", "weight_zero"], "no_endpoint"],
    [["model_not_served"], "model_not_served"],
    [["model_not_served", "draining"], "no_endpoint"],
    [["model_not_served", "weight_zero"], "no_endpoint"],
    [["down"], "unavailable"],
    [["loading"], "unavailable"],
    [["auth_failed"], "unavailable"],
    [["down", "model_not_served", "draining"], "unavailable"],
    [["tried"], "exhausted"],
    [["tried", "down", "model_not_served"], "exhausted"],
    [["no_room"], "saturated"],
    [["no_room", "tried", "down", "draining"], "saturated"],
  ])("of %j is %s", (whys, reason) => {
    expect(refusalOf(whys.map((why) => ({ endpoint: "a", why })))).toBe(reason);
  });
});
