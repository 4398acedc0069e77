import { describe, expect, it } from "vitest";
import { record, refusedRecord, resultOf } from "../../../test/support/request-records.ts";
import { summarize } from "./summary.ts";

const SLO = { ttftMs: 100, tpotMs: 10 };

describe("summarize", () => {
  it("tells ended, refused and unfinished requests apart", () => {
    const summary = summarize(resultOf([record(), refusedRecord(), record({ endedAtMs: undefined })]), SLO);
    expect(summary).toMatchObject({ requests: 3, ended: 1, refused: 1, unfinished: 1 });
  });

  it.each([
    ["within both limits", record(), 1],
    ["late with its first token", record({ firstTokenAtMs: 1101 }), 0],
    ["slow after it", record({ endedAtMs: 1191 }), 0],
    ["of one token, in time", record({ outputTokens: 1, endedAtMs: 1100 }), 1],
    ["refused", refusedRecord(), 0],
    ["lost after its first token", record({ endedAtMs: undefined }), 0],
  ])("counts a request %s", (_, request, good) => {
    expect(summarize(resultOf([request]), SLO).goodputRatio).toBe(good);
  });

  it("takes goodput of all that arrived", () => {
    expect(summarize(resultOf([record(), record(), record(), refusedRecord()]), SLO).goodputRatio).toBe(0.75);
  });

  it("counts output of requests that ended, from first arrival to last end", () => {
    const late = record({ arrivedAtMs: 1500, sentAtMs: 1500, firstTokenAtMs: 1600, endedAtMs: 3000 });
    const summary = summarize(resultOf([record(), record({ endedAtMs: undefined }), late]), SLO);
    expect(summary.outputTokensPerSecond).toBe(10);
  });

  it("takes the hit ratio of tokens, without requests that no engine saw", () => {
    const requests = [record({ promptTokens: 300, cachedTokens: 200 }), record(), refusedRecord()];
    expect(summarize(resultOf(requests), SLO).hitRatio).toBe(0.5);
  });

  it("has the longest wait at the balancer", () => {
    const requests = [record(), record({ sentAtMs: 1070 }), record({ sentAtMs: 1030 })];
    expect(summarize(resultOf(requests), SLO).longestHoldMs).toBe(70);
  });

  it("spreads load over all endpoints, also those that got nothing", () => {
    const summary = summarize(resultOf([record(), record()]), SLO);
    expect([summary.requestSpread, summary.workSpread]).toEqual([2, 2]);
  });

  it("weighs work, not requests, in the spread of work", () => {
    // Work tokens 0.1 x 100 + 10 = 20 and 0.1 x (700 - 100) = 60: the larger is 1.5 times their mean.
    const heavy = record({ endpoint: "b", promptTokens: 700, cachedTokens: 100, outputTokens: 0 });
    const summary = summarize(resultOf([record(), heavy]), SLO);
    expect(summary.requestSpread).toBe(1);
    expect(summary.workSpread).toBeCloseTo(1.5, 10);
  });

  it("makes do with no requests at all", () => {
    expect(summarize(resultOf([]), SLO)).toMatchObject({
      requests: 0,
      goodputRatio: 0,
      outputTokensPerSecond: 0,
      hitRatio: 0,
      requestSpread: 1,
      ttftMs: undefined,
      tpotMs: undefined,
      e2eMs: undefined,
    });
  });
});
