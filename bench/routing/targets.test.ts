import { describe, expect, it } from "vitest";
import type { Contender, Figures, PeerClass } from "./contest.ts";
import { atMost, EXPERT_HOLD, goodput, goodputWithTpotTarget, judge } from "./targets.ts";

const figures = (ttftMs: number, goodputPercent: number): Figures => ({
  ttftMs,
  goodputPercent,
  e2eMs: 10 * ttftMs,
  ttftP99Ms: 5 * ttftMs,
  longestWaitMs: ttftMs,
});
const peer = (name: string, group: PeerClass, ttftMs: number, good: number): Contender => ({
  name,
  class: group,
  figures: figures(ttftMs, good),
});

const PEERS = [
  peer("quick", "plain", 100, 80),
  peer("good", "plain", 200, 90),
  peer("queue", "own_hold", 50, 70),
  peer(EXPERT_HOLD, "expert_hold", 60, 95),
];

describe("judge", () => {
  it.each([
    ["a time at its limit", atMost("ttftMs", 2), figures(100, 0), "queue", 2, true],
    ["a time above it", atMost("ttftMs", 1.9), figures(100, 0), "queue", 2, false],
    ["a time against one class", atMost("ttftMs", 1, ["plain"]), figures(90, 0), "quick", 0.9, true],
    ["a time against one peer", atMost("longestWaitMs", 0.5, EXPERT_HOLD), figures(30, 0), EXPERT_HOLD, 0.5, true],
    ["goodput at its limit", goodput(-0.5), figures(1, 94.5), EXPERT_HOLD, -0.5, true],
    ["goodput below it", goodput(2, ["plain"]), figures(1, 91), "good", 1, false],
    ["goodput against those that hold", goodputWithTpotTarget(-3), figures(1, 91), EXPERT_HOLD, -4, false],
  ] as const)("judges %s", (_, target, ours, rival, value, isMet) => {
    expect(judge(target, ours, PEERS)).toEqual({ target, rival, value, isMet });
  });

  it("takes a target without a rival as missed", () => {
    expect(judge(goodput(0), figures(1, 100), [])).toMatchObject({ rival: undefined, isMet: false });
  });
});
