import { describe, expect, it } from "vitest";
import { KeyUses } from "./key-uses.ts";
import type { KeyUse } from "./work-exchange.ts";

function heardBy(uses: KeyUses): [string, KeyUse][] {
  const heard: [string, KeyUse][] = [];
  uses.onUsedElsewhere((keyId, use) => heard.push([keyId, use]));
  return heard;
}

describe("what keys use", () => {
  it("is told as a total, of those that used something since", () => {
    const uses = new KeyUses();
    uses.used("a", 1, 100);
    uses.used("b", 1, 50);
    expect(uses.take("changes")).toEqual(
      new Map([
        ["a", { requests: 1, tokens: 100 }],
        ["b", { requests: 1, tokens: 50 }],
      ]),
    );
    uses.used("a", 0, -30);
    uses.used("a", 1, 10);
    expect(uses.take("changes")).toEqual(new Map([["a", { requests: 2, tokens: 80 }]]));
    expect(uses.take("changes").size).toBe(0);
    expect(uses.take("whole").size).toBe(2);
  });

  it("elsewhere is counted from what was said last, whatever was lost in between", () => {
    const uses = new KeyUses();
    const heard = heardBy(uses);
    uses.adopt("other", new Map([["a", { requests: 10, tokens: 1000 }]]), true);
    expect(heard).toEqual([]);
    uses.adopt("other", new Map([["a", { requests: 13, tokens: 900 }]]), false);
    uses.adopt("other", new Map([["a", { requests: 13, tokens: 900 }]]), false);
    uses.adopt("other", new Map([["b", { requests: 1, tokens: 5 }]]), false);
    uses.adopt("third", new Map([["a", { requests: 2, tokens: 2 }]]), true);
    uses.adopt("third", new Map([["a", { requests: 3, tokens: 4 }]]), false);
    expect(heard).toEqual([
      ["a", { requests: 3, tokens: -100 }],
      ["b", { requests: 1, tokens: 5 }],
      ["a", { requests: 1, tokens: 2 }],
    ]);
  });

  it("of a node that is gone stays used, and one of its name begins anew", () => {
    const uses = new KeyUses();
    const heard = heardBy(uses);
    uses.adopt("other", new Map([["a", { requests: 10, tokens: 10 }]]), true);
    uses.forget("other");
    uses.adopt("other", new Map([["a", { requests: 2, tokens: 2 }]]), true);
    expect(heard).toEqual([]);
    uses.adopt("other", new Map([["a", { requests: 3, tokens: 3 }]]), false);
    expect(heard).toEqual([["a", { requests: 1, tokens: 1 }]]);
  });
});
