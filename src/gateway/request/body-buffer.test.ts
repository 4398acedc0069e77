import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BodyBuffer } from "./body-buffer.ts";
import { BufferBudget } from "./buffer-budget.ts";

const bytes = (count: number): Buffer => Buffer.alloc(count, "x");

describe("BodyBuffer", () => {
  it("puts pieces together, however they are cut, and counts what is left in the end", () => {
    const pieces = fc.array(fc.uint8Array({ maxLength: 50_000 }), { maxLength: 8 });
    fc.assert(
      fc.property(pieces, fc.boolean(), (all, isDeclared) => {
        const whole = Buffer.concat(all);
        const budget = new BufferBudget(() => 2 ** 30);
        const body = new BodyBuffer(2 ** 20, isDeclared ? whole.length : undefined, budget.open());
        for (const piece of all) {
          expect(body.append(Buffer.from(piece))).toBe("kept");
          expect(budget.usedBytes).toBeGreaterThanOrEqual(body.length);
        }
        expect(body.take()).toEqual(whole);
        expect(budget.usedBytes).toBe(whole.length);
      }),
      { numRuns: 200 },
    );
  });

  it("keeps a body of one piece as it came", () => {
    const piece = bytes(70_000);
    const body = new BodyBuffer(2 ** 20, 70_000, new BufferBudget(() => 70_000).open());
    expect(body.append(piece)).toBe("kept");
    expect(body.take()).toBe(piece);
  });

  it("takes no more than twice what it holds, nor what was declared", () => {
    const budget = new BufferBudget(() => 2 ** 30);
    const body = new BodyBuffer(2 ** 20, 100_000, budget.open());
    for (let sent = 0; sent < 99_000; sent += 1_000) {
      body.append(bytes(1_000));
      expect(budget.usedBytes).toBeLessThanOrEqual(Math.min(100_000, Math.max(16_384, 2 * body.length)));
    }
  });

  it("refuses what is over the limit, and what the budget has no room for", () => {
    const budget = new BufferBudget(() => 50_000);
    expect(new BodyBuffer(10, undefined, budget.open()).append(bytes(11))).toBe("too_large");
    const first = new BodyBuffer(2 ** 20, 40_000, budget.open());
    expect(first.append(bytes(40_000))).toBe("kept");
    expect(new BodyBuffer(2 ** 20, 20_000, budget.open()).append(bytes(20_000))).toBe("too_much_buffered");
    first.discard();
    expect(budget.usedBytes).toBe(0);
  });
});

describe("BufferBudget", () => {
  it("gets back what a share holds, once", () => {
    const budget = new BufferBudget(() => 100);
    const [one, other] = [budget.open(), budget.open()];
    expect(one.grow(60) && other.grow(40)).toBe(true);
    expect(other.grow(1)).toBe(false);
    one.shrink(1_000);
    one.release();
    one.release();
    expect(budget.usedBytes).toBe(40);
    expect(one.grow(1)).toBe(false);
    expect(other.grow(60)).toBe(true);
    other.release();
    expect(budget.usedBytes).toBe(0);
  });

  it("takes on another limit", () => {
    let limit = 10;
    const share = new BufferBudget(() => limit).open();
    expect(share.grow(11)).toBe(false);
    limit = 11;
    expect(share.grow(11)).toBe(true);
  });
});
