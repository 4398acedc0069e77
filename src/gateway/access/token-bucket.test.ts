import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TokenBucket } from "./token-bucket.ts";

describe("TokenBucket", () => {
  it("gives a minute's worth at once, and then as it fills", () => {
    const bucket = new TokenBucket(60, 0);
    expect(bucket.take(60, 0)).toEqual({ isTaken: true });
    expect(bucket.take(1, 0)).toEqual({ isTaken: false, waitMs: 1_000 });
    expect(bucket.take(1, 999)).toMatchObject({ isTaken: false });
    expect(bucket.take(1, 1_000)).toEqual({ isTaken: true });
    expect(bucket.take(30, 30_999)).toMatchObject({ isTaken: false });
    expect(bucket.take(30, 31_000)).toEqual({ isTaken: true });
  });

  it("takes nothing when it refuses", () => {
    const bucket = new TokenBucket(60, 0);
    bucket.take(59, 0);
    for (let i = 0; i < 10; i++) expect(bucket.take(2, 0)).toEqual({ isTaken: false, waitMs: 1_000 });
    expect(bucket.remaining(0)).toBe(1);
  });

  it("saves no more than a minute's worth", () => {
    const bucket = new TokenBucket(60, 0);
    expect(bucket.remaining(3_600_000)).toBe(60);
  });

  it("serves what is larger than all of it once it is full, and is in debt then", () => {
    const bucket = new TokenBucket(100, 0);
    expect(bucket.take(250, 0)).toEqual({ isTaken: true });
    expect(bucket.remaining(0)).toBe(0);
    expect(bucket.take(1, 0)).toEqual({ isTaken: false, waitMs: (151 / 100) * 60_000 });
    expect(bucket.take(250, 149_999)).toMatchObject({ isTaken: false });
    expect(bucket.take(250, 150_000)).toEqual({ isTaken: true });
  });

  it("takes back what was not used, and asks for what was used beyond it", () => {
    const bucket = new TokenBucket(100, 0);
    bucket.take(80, 0);
    bucket.putBack(50, 0);
    expect(bucket.remaining(0)).toBe(70);
    bucket.putBack(-90, 0);
    expect(bucket.take(0, 0)).toMatchObject({ isTaken: false });
    bucket.putBack(500, 0);
    expect(bucket.remaining(0)).toBe(100);
  });

  it("tells when it will be full", () => {
    const bucket = new TokenBucket(60, 0);
    expect(bucket.resetMs(0)).toBe(0);
    bucket.take(30, 0);
    expect(bucket.resetMs(10_000)).toBe(20_000);
  });

  it("keeps the share that is left when its rate changes", () => {
    const bucket = new TokenBucket(60, 0);
    bucket.take(45, 0);
    const resized = bucket.resized(600, 0);
    expect(resized.remaining(0)).toBe(150);
    expect(resized.resetMs(0)).toBe(45_000);
  });

  it("never gives more in a minute than twice what a minute gives, whatever is asked for and when", () => {
    const asks = fc.array(fc.tuple(fc.integer({ min: 0, max: 5_000 }), fc.integer({ min: 1, max: 100 })));
    fc.assert(
      fc.property(asks, (sequence) => {
        const bucket = new TokenBucket(100, 0);
        const taken: { readonly atMs: number; readonly amount: number }[] = [];
        let nowMs = 0;
        for (const [gapMs, amount] of sequence) {
          nowMs += gapMs;
          if (bucket.take(amount, nowMs).isTaken) taken.push({ atMs: nowMs, amount });
          const lastMinute = taken.filter(({ atMs }) => atMs > nowMs - 60_000);
          expect(lastMinute.reduce((sum, one) => sum + one.amount, 0)).toBeLessThanOrEqual(200 + 1e-6);
        }
      }),
    );
  });

  it("is taken from after exactly the wait that it tells", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1e6 }),
        fc.array(fc.integer({ min: 1, max: 2e6 })),
        (perMinute, amounts) => {
          const bucket = new TokenBucket(perMinute, 0);
          let nowMs = 0;
          for (const amount of amounts) {
            const taking = bucket.take(amount, nowMs);
            if (taking.isTaken) continue;
            expect(taking.waitMs).toBeGreaterThan(0);
            nowMs += taking.waitMs + 1e-3;
            expect(bucket.take(amount, nowMs)).toEqual({ isTaken: true });
          }
        },
      ),
    );
  });
});
