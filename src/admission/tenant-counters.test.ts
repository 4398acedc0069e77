import { describe, expect, it } from "vitest";
import { requestProfile } from "../core/index.ts";
import { MAX_IDLE_TENANTS, TenantCounters } from "./tenant-counters.ts";

const request = requestProfile({ promptTokens: 100, expectedOutputTokens: 30 });

describe("what a tenant got", () => {
  it("is its prompt tokens, and twice its output tokens", () => {
    const tenant = new TenantCounters().of("a");
    tenant.charge(100, 0);
    tenant.charge(0, 25);
    expect(tenant.servedTokens).toBe(150);
  });

  it("is corrected by what turned out to be less", () => {
    const tenant = new TenantCounters().of("a");
    tenant.charge(100, 25);
    tenant.charge(-20, -5);
    expect(tenant.servedTokens).toBe(120);
  });

  it("is claimed together with what it waits for", () => {
    const tenant = new TenantCounters().of("a");
    tenant.charge(100, 0);
    for (const _ of "12") tenant.held(request);
    expect([tenant.costOf(request), tenant.claimedTokens]).toEqual([160, 420]);
    tenant.left(request);
    expect([tenant.claimedTokens, tenant.servedTokens]).toEqual([260, 100]);
  });
});

describe("a tenant that was away", () => {
  /** Tenants of these names that wait, each with what it got. */
  function waiting(served: Readonly<Record<string, number>>): TenantCounters {
    const tenants = new TenantCounters();
    for (const [name, tokens] of Object.entries(served)) {
      const tenant = tenants.of(name);
      tenant.arrived();
      tenant.held(request);
      tenant.charge(tokens - tenant.servedTokens, 0);
    }
    return tenants;
  }

  it("is lifted to the least of those that wait", () => {
    const tenants = waiting({ rich: 900, poor: 500 });
    const back = tenants.of("back");
    back.arrived();
    expect(back.servedTokens).toBe(500);
  });

  it("keeps what it got, if that is more", () => {
    const tenants = waiting({ rich: 900, poor: 500 });
    const back = tenants.of("back");
    back.charge(700, 0);
    back.arrived();
    expect(back.servedTokens).toBe(700);
  });

  it("is not lifted while it waits itself", () => {
    const tenants = waiting({ rich: 900, poor: 500 });
    tenants.of("rich").left(request);
    tenants.of("rich").charge(-800, 0);
    tenants.of("poor").arrived();
    expect(tenants.of("poor").servedTokens).toBe(500);
    tenants.of("rich").arrived();
    expect(tenants.of("rich").servedTokens).toBe(500);
  });

  it("is lifted to whoever was served last, where nobody waits", () => {
    const tenants = new TenantCounters();
    const busy = tenants.of("busy");
    busy.arrived();
    busy.charge(1000, 0);
    busy.charge(0, 100);
    const fresh = tenants.of("fresh");
    fresh.arrived();
    expect(fresh.servedTokens).toBe(1200);
  });

  it("is nobody in particular without a name, but one", () => {
    const tenants = new TenantCounters();
    tenants.of(undefined).arrived();
    expect(tenants.of(undefined)).toBe(tenants.of(undefined));
    expect(tenants.of(undefined)).not.toBe(tenants.of("undefined"));
  });
});

describe("tenants that are not heard of any more", () => {
  it("are forgotten, the one that was away longest first, and never while they wait", () => {
    const tenants = new TenantCounters();
    const [patient, old, older] = ["patient", "old", "older"].map((name) => tenants.of(name));
    for (const tenant of [patient, older, old]) tenant?.arrived();
    patient?.held(request);
    for (let i = 0; i < MAX_IDLE_TENANTS - 1; i++) tenants.of(`crowd-${i}`).arrived();
    expect(tenants.size).toBe(MAX_IDLE_TENANTS + 1);
    expect([tenants.of("patient") === patient, tenants.of("older") === older]).toEqual([true, false]);
    expect(tenants.of("old")).toBe(old);
    for (let i = 0; i < 10; i++) tenants.of(`further-${i}`).arrived();
    expect([tenants.of("patient") === patient, tenants.of("old") === old]).toEqual([true, false]);
    expect(tenants.size).toBe(MAX_IDLE_TENANTS + 1);
  });
});
