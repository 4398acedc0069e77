import type { IncomingHttpHeaders } from "node:http";
import { describe, expect, it } from "vitest";
import { clientKey } from "../../../test/support/client-key.ts";
import { KeyUses } from "../../runtime/index.ts";
import { Access, type Caller } from "./access.ts";

const clock = { atMs: 0, nowMs: () => clock.atMs };

function admitted(access: Access, key: string): Caller {
  const caller = access.admit({ authorization: `Bearer ${key}` });
  if (caller === undefined) throw new Error("was not admitted");
  return caller;
}

describe("Access", () => {
  const access = new Access([clientKey("a", "key-a"), clientKey("b", "key-b"), clientKey("ü", "schlüssel")], clock);

  it.each<[string, IncomingHttpHeaders, string | undefined]>([
    ["a bearer token", { authorization: "Bearer key-a" }, "a"],
    ["a scheme in another case", { authorization: "bearer  key-b" }, "b"],
    ["x-api-key", { "x-api-key": "key-b" }, "b"],
    ["a bearer token before x-api-key", { authorization: "Bearer key-a", "x-api-key": "key-b" }, "a"],
    ["x-api-key beside credentials for others", { authorization: "Basic eDp5", "x-api-key": "key-b" }, "b"],
    ["bytes beyond ASCII as they were sent", { "x-api-key": Buffer.from("schlüssel").toString("latin1") }, "ü"],
    ["nothing", {}, undefined],
    ["an unknown key", { authorization: "Bearer key-c" }, undefined],
    ["an unknown bearer token and a good x-api-key", { authorization: "Bearer x", "x-api-key": "key-b" }, undefined],
    ["a part of a key", { authorization: "Bearer key-" }, undefined],
    ["a key with more behind it", { authorization: "Bearer key-a key-b" }, undefined],
    ["two keys in one", { "x-api-key": "key-a, key-b" }, undefined],
    ["an empty bearer token", { authorization: "Bearer " }, undefined],
    ["an empty x-api-key", { "x-api-key": "" }, undefined],
    ["the key without its scheme", { authorization: "key-a" }, undefined],
    ["the hash in place of the key", { "x-api-key": clientKey("a", "key-a").sha256.toString("hex") }, undefined],
  ])("knows a client by %s", (_what, headers, id) => {
    expect(access.admit({ ...headers })?.keyId).toBe(id);
  });

  it("takes the credentials out of the headers, whether they are right or not", () => {
    for (const key of ["key-a", "wrong"]) {
      const headers: IncomingHttpHeaders = { authorization: `Bearer ${key}`, "x-api-key": key, accept: "*/*" };
      access.admit(headers);
      expect(headers).toEqual({ accept: "*/*" });
    }
  });

  it("lets everybody in, with their credentials, where there are no keys", () => {
    const headers: IncomingHttpHeaders = { authorization: "Bearer engine-key" };
    const caller = new Access([], clock).admit(headers);
    expect(caller).toMatchObject({ keyId: undefined, tenant: undefined, ceiling: "normal" });
    expect(caller?.mayUse("m") && caller.mayUse(undefined) && caller.takeRequest().isTaken).toBe(true);
    expect(caller?.takeTokens(1e9).isTaken).toBe(true);
    expect(caller?.limitHeaders()).toEqual([]);
    expect(headers).toEqual({ authorization: "Bearer engine-key" });
  });

  it("says who a key belongs to and what it may", () => {
    const settings = { tenant: "team", priority: "high", models: ["m", "fast"] } as const;
    const caller = admitted(new Access([clientKey("a", "k", settings)], clock), "k");
    expect(caller).toMatchObject({ keyId: "a", tenant: "team", ceiling: "high" });
    expect(["m", "fast", "other", "M", undefined].map((model) => caller.mayUse(model))).toEqual([
      true,
      true,
      false,
      false,
      false,
    ]);
  });
});

describe("the limits of a key", () => {
  it("hold for requests and for tokens, each on its own", () => {
    clock.atMs = 0;
    const keys = [clientKey("a", "k", { requestsPerMinute: 2, tokensPerMinute: 600 })];
    const caller = admitted(new Access(keys, clock), "k");
    expect([caller.takeRequest(), caller.takeRequest(), caller.takeRequest()]).toEqual([
      { isTaken: true },
      { isTaken: true },
      { isTaken: false, waitMs: 30_000 },
    ]);
    expect(caller.takeTokens(500)).toEqual({ isTaken: true });
    expect(caller.takeTokens(200)).toEqual({ isTaken: false, waitMs: 10_000 });
    caller.settleTokens(500, 300);
    expect(caller.takeTokens(200)).toEqual({ isTaken: true });
    expect(caller.limitHeaders()).toEqual([
      ...["x-ratelimit-limit-requests", "2", "x-ratelimit-remaining-requests", "0"],
      ...["x-ratelimit-reset-requests", "1m0s"],
      ...["x-ratelimit-limit-tokens", "600", "x-ratelimit-remaining-tokens", "100"],
      ...["x-ratelimit-reset-tokens", "50s"],
    ]);
    clock.atMs = 30_000;
    expect(caller.takeRequest()).toEqual({ isTaken: true });
  });

  it("are one key's own", () => {
    const access = new Access(
      [clientKey("a", "ka", { requestsPerMinute: 1 }), clientKey("b", "kb", { requestsPerMinute: 1 })],
      clock,
    );
    expect(admitted(access, "ka").takeRequest().isTaken).toBe(true);
    expect(admitted(access, "ka").takeRequest().isTaken).toBe(false);
    expect(admitted(access, "kb").takeRequest().isTaken).toBe(true);
  });

  it("hold over all processes that serve the key, and one that begins later knows what is used", () => {
    clock.atMs = 0;
    const keys = [clientKey("a", "k", { requestsPerMinute: 4, tokensPerMinute: 600 })];
    const uses = [new KeyUses(), new KeyUses()] as const;
    const [one, other] = uses.map((each) => new Access(keys, clock, each)) as [Access, Access];
    const exchange = (isFirst = false): void => {
      uses[0].adopt("other", uses[1].take("whole"), isFirst);
      uses[1].adopt("one", uses[0].take("whole"), isFirst);
    };
    exchange(true);
    admitted(one, "k").takeRequest();
    admitted(one, "k").takeRequest();
    admitted(one, "k").takeTokens(500);
    admitted(one, "k").settleTokens(500, 400);
    admitted(other, "k").takeRequest();
    exchange();
    expect([one, other].map((access) => admitted(access, "k").takeTokens(300).isTaken)).toEqual([false, false]);
    expect(admitted(other, "k").takeTokens(200).isTaken).toBe(true);
    expect(admitted(one, "k").takeRequest().isTaken).toBe(true);
    exchange();
    expect([one, other].map((access) => admitted(access, "k").takeRequest().isTaken)).toEqual([false, false]);
    const third = new Access(keys, clock, new KeyUses());
    for (const [keyId, use] of one.outstanding) third.usedElsewhere(keyId, use);
    expect(admitted(third, "k").takeRequest()).toEqual({ isTaken: false, waitMs: 15_000 });
    clock.atMs = 15_000;
    expect(admitted(third, "k").takeRequest().isTaken).toBe(true);
    third.usedElsewhere("unknown", { requests: 1, tokens: 1 });
  });

  it("stay used when the configuration changes, even to another key of the same id", () => {
    const access = new Access([clientKey("a", "old", { requestsPerMinute: 10 })], clock);
    for (let i = 0; i < 10; i++) admitted(access, "old").takeRequest();
    access.configure([clientKey("a", "new", { requestsPerMinute: 20 }), clientKey("b", "kb")]);
    expect(access.admit({ "x-api-key": "old" })).toBeUndefined();
    expect(admitted(access, "new").takeRequest()).toMatchObject({ isTaken: false });
    access.configure([clientKey("a", "new")]);
    expect(admitted(access, "new").takeRequest()).toEqual({ isTaken: true });
    access.configure([]);
    expect(access.admit({})?.keyId).toBeUndefined();
  });
});
