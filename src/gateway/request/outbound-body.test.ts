import { describe, expect, it } from "vitest";
import { BufferBudget, type BufferShare } from "./buffer-budget.ts";
import { OutboundBody } from "./outbound-body.ts";

const TEXT = Buffer.from(`{"model":"m","pad":"${"x".repeat(180)}"}`);
const CODED = Buffer.alloc(50);
const RENAMED = Buffer.from(`{"model":"other","pad":"${"x".repeat(180)}"}`);

function received(limitBytes: number, ...buffers: Buffer[]): { budget: BufferBudget; share: BufferShare } {
  const budget = new BufferBudget(() => limitBytes);
  const share = budget.open();
  for (const { length } of buffers) share.grow(length);
  return { budget, share };
}

describe("OutboundBody", () => {
  it("keeps what was sent, and nothing else, when nothing has to change", () => {
    const { budget, share } = received(1_000, CODED, TEXT);
    const body = new OutboundBody({ sent: CODED, decoded: TEXT, renamed: undefined, mayAskUsage: false }, share);
    expect([body.keptBytes, budget.usedBytes]).toEqual([CODED.length, CODED.length]);
    expect(body.askForUsage()).toBe(false);
    expect(body.bytes(false)).toBe(CODED);
    expect(body.keepsContentEncoding(false)).toBe(true);
  });

  it("keeps what it decoded until the option is in it", () => {
    const { budget, share } = received(1_000, CODED, TEXT);
    const body = new OutboundBody({ sent: CODED, decoded: TEXT, renamed: undefined, mayAskUsage: true }, share);
    expect(budget.usedBytes).toBe(CODED.length + TEXT.length);
    expect(body.askForUsage()).toBe(true);
    const asking = body.bytes(true);
    expect(JSON.parse(asking.toString()).stream_options).toEqual({ include_usage: true });
    expect(budget.usedBytes).toBe(CODED.length + asking.length);
    expect([body.keepsContentEncoding(true), body.keepsContentEncoding(false)]).toEqual([false, true]);
  });

  it("lets what came go when another model is named in it", () => {
    const { budget, share } = received(1_000, CODED, TEXT);
    const body = new OutboundBody({ sent: CODED, decoded: TEXT, renamed: RENAMED, mayAskUsage: false }, share);
    expect([body.isCounted, budget.usedBytes]).toEqual([true, RENAMED.length]);
    expect(body.bytes(false)).toBe(RENAMED);
    expect(body.keepsContentEncoding(false)).toBe(false);
  });

  it("says when what had to change has no room", () => {
    const { budget, share } = received(TEXT.length, TEXT);
    const body = new OutboundBody({ sent: TEXT, decoded: TEXT, renamed: RENAMED, mayAskUsage: false }, share);
    expect([body.isCounted, budget.usedBytes]).toEqual([false, TEXT.length]);
  });

  it("counts the copy with the option, makes it once, and does without it where there is no room", () => {
    const { budget, share } = received(2 * TEXT.length + 100, TEXT);
    const body = new OutboundBody({ sent: TEXT, decoded: TEXT, renamed: undefined, mayAskUsage: true }, share);
    const other = budget.open();
    other.grow(TEXT.length);
    expect(body.askForUsage()).toBe(false);
    expect(body.bytes(false)).toBe(TEXT);
    expect(() => body.bytes(true)).toThrow();
    other.release();
    expect(body.askForUsage() && body.askForUsage()).toBe(true);
    expect(body.bytes(true)).toBe(body.bytes(true));
    expect(budget.usedBytes).toBe(TEXT.length + body.bytes(true).length);
    expect(body.keptBytes).toBe(budget.usedBytes);
  });

  it("is gone once released, and takes nothing any more", () => {
    const { budget, share } = received(1_000, TEXT);
    const body = new OutboundBody({ sent: TEXT, decoded: TEXT, renamed: undefined, mayAskUsage: true }, share);
    body.askForUsage();
    body.release();
    expect([body.keptBytes, budget.usedBytes]).toEqual([0, 0]);
    for (const asks of [true, false]) expect(() => body.bytes(asks)).toThrow(/not kept/);
  });
});
