import { describe, expect, it } from "vitest";
import { clientPartOf, patienceOf, priorityOf, type Sender, senderOf, senderReaders } from "./sender.ts";

describe("a request's priority", () => {
  it.each([
    [undefined, "normal", "normal"],
    [undefined, "high", "normal"],
    [undefined, "low", "low"],
    ["high", "high", "high"],
    ["high", "normal", "normal"],
    ["normal", "low", "low"],
    ["low", "high", "low"],
    ["urgent", "high", "normal"],
    ["HIGH", "high", "normal"],
  ] as const)("asked for as %s under a ceiling of %s is %s", (asked, ceiling, expected) => {
    expect(priorityOf(asked === undefined ? {} : { "x-evenkeel-priority": asked }, ceiling)).toBe(expected);
  });
});

describe("a client's patience", () => {
  it.each([
    [{}, undefined],
    [{ "x-evenkeel-timeout-ms": "1500" }, 1500],
    [{ "x-stainless-timeout": "600" }, 600_000],
    [{ "x-stainless-timeout": "0.5" }, 500],
    [{ "x-evenkeel-timeout-ms": "2000", "x-stainless-timeout": "600" }, 2000],
    [{ "x-evenkeel-timeout-ms": "soon", "x-stainless-timeout": "600" }, 600_000],
    [{ "x-evenkeel-timeout-ms": "0" }, undefined],
    [{ "x-evenkeel-timeout-ms": "-5" }, undefined],
    [{ "x-evenkeel-timeout-ms": "1e3" }, undefined],
    [{ "x-evenkeel-timeout-ms": "Infinity" }, undefined],
    [{ "x-evenkeel-timeout-ms": "999999999999" }, undefined],
  ])("said as %j is %s ms", (headers, expected) => {
    expect(patienceOf(headers)).toBe(expected);
  });
});

describe("senderOf", () => {
  const readers = senderReaders({ sessionKey: ["header:s", "body:s"], tenantKey: ["header:t", "body:t"] });
  const anybody = { tenant: undefined, ceiling: "normal" } as const;
  const of = (headers: Record<string, string>, body = {}, caller: Parameters<typeof senderOf>[3] = anybody): Sender =>
    senderOf(headers, body, readers, caller).sender;

  it("takes the tenant of the caller's key before any that the request names", () => {
    expect(of({ t: "named" }).tenant).toBe("named");
    expect(of({}, { t: 7 }).tenant).toBe("7");
    expect(of({}).tenant).toBeUndefined();
    expect(of({ t: "named" }, {}, { tenant: "key's", ceiling: "high" })).toMatchObject({ tenant: "key's" });
  });

  it.each(["a\nb", "a\u0000", "\u009b", "x".repeat(513)])("takes %j for no tenant", (t) => {
    expect(of({}, { t }).tenant).toBeUndefined();
  });

  it("keeps the sessions of tenants apart, whatever their keys are", () => {
    const senders = [
      of({ s: "1" }),
      of({ s: "1", t: "a" }),
      of({ s: "1", t: "b" }),
      of({ t: "a" }, { s: "b\n1" }),
      of({}, { s: "a\n1" }),
      of({}, { s: "b\n1" }),
    ];
    expect(new Set(senders.map(({ sessionKey }) => sessionKey)).size).toBe(senders.length);
    expect(senders.map(({ sessionKey = "" }) => clientPartOf(sessionKey))).toEqual([
      ...["1", "1", "1"],
      ...["b\n1", "a\n1", "b\n1"],
    ]);
    expect(of({ t: "a" }).sessionKey).toBeUndefined();
  });

  it("says what became of the session key", () => {
    const became = (headers: Record<string, string>) => senderOf(headers, {}, readers, anybody).sessionKey;
    expect([became({ s: "1" }), became({}), became({ s: " " })]).toEqual(["found", "absent", "unusable"]);
  });
});
