import { describe, expect, it } from "vitest";
import { bestBy, type Contender, type Figures, finalists, meanFigures, type PeerClass } from "./contest.ts";

function contender(name: string, figures: Partial<Figures>, group: PeerClass = "plain"): Contender {
  const middling = { ttftMs: 1e6, e2eMs: 1e6, goodputPercent: 1, ttftP99Ms: 1e6, longestWaitMs: 1e6 };
  return { name, class: group, figures: { ...middling, ...figures } };
}

describe("bestBy", () => {
  const peers = [
    contender("quick", { ttftMs: 10, goodputPercent: 80 }),
    contender("good", { ttftMs: 20, goodputPercent: 90 }),
    contender("stuck", { ttftMs: Number.POSITIVE_INFINITY, goodputPercent: 0 }),
  ];

  it("takes the least of a time and the most of goodput", () => {
    expect(bestBy("ttftMs", peers)?.name).toBe("quick");
    expect(bestBy("goodputPercent", peers)?.name).toBe("good");
  });

  it("finds nobody among none", () => {
    expect(bestBy("ttftMs", [])).toBeUndefined();
  });
});

describe("finalists", () => {
  it("keeps whoever is near the best of its class by some metric", () => {
    const names = finalists([
      contender("first", { ttftMs: 100, e2eMs: 900, goodputPercent: 50, ttftP99Ms: 1 }),
      contender("near", { ttftMs: 109, e2eMs: 2000 }),
      contender("far", { ttftMs: 112, e2eMs: 2000 }),
      contender("holds", { ttftMs: 5000 }, "own_hold"),
    ]);
    expect(names.toSorted()).toEqual(["first", "holds", "near"]);
  });

  it("keeps two by one metric at most", () => {
    const names = finalists([101, 100, 102, 103].map((ttftMs) => contender(`${ttftMs}`, { ttftMs, e2eMs: ttftMs })));
    expect(names).toContain("100");
    expect(names).toContain("101");
    expect(names).not.toContain("103");
  });
});

describe("meanFigures", () => {
  it("takes the mean of each metric", () => {
    const one = contender("a", { ttftMs: 10, e2eMs: 5 }).figures;
    expect(meanFigures([one, { ...one, ttftMs: 20, longestWaitMs: 0 }])).toEqual({
      ...one,
      ttftMs: 15,
      longestWaitMs: 5e5,
    });
  });
});
