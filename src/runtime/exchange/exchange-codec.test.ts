import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { EndpointShare, SharedWork } from "../../core/index.ts";
import { decodeMessage, encodeMessage } from "./exchange-codec.ts";
import type { ExchangeMessage } from "./work-exchange.ts";

const share: EndpointShare = {
  account: {
    requests: 3,
    waitingRequests: 1,
    waitingPrefillTokens: 1000,
    waitingPrefillPairs: 500_000.5,
    waitingPromptTokens: 1200,
    runningRequests: 2,
    contextTokens: 5000,
    outputTokens: 300,
    recentPrefillTokens: 1234.5678,
    recentPrefillPairs: 1e12,
    prefillMovedAgoMs: 17.25,
  },
  held: { requests: 2, prefillTokens: 70, prefillPairs: 800, first: { urgency: 2, keyAgoMs: -30.5 } },
  done: { tokens: 1e9, pairs: 1e15, steps: 12 },
  samples: [
    { scale: "decode", work: { mainMs: 7.5, otherMs: [1, 2] }, ms: 11, noise: 0.1 },
    { scale: "prefill", work: { mainMs: 30, otherMs: [4] }, ms: 40, noise: 0.2 },
  ],
};
const idle: EndpointShare = {
  account: { ...share.account, requests: 0, prefillMovedAgoMs: undefined },
  held: { requests: 0, prefillTokens: 0, prefillPairs: 0 },
  done: { tokens: 0, pairs: 0, steps: 0 },
  samples: [],
};
const work: SharedWork = {
  sequence: 7,
  isWhole: false,
  isPrompt: true,
  endpoints: { a: share, "b/ü": idle },
  cache: [
    { kind: "sent", request: 1, endpointId: "b/ü", promptTokens: 300, prefix: undefined },
    {
      kind: "sent",
      request: 2,
      endpointId: "gone",
      promptTokens: 310,
      prefix: { hashes: [1, 2 ** 52 - 1], tokensPerBlock: 61.5 },
    },
    { kind: "ended", request: 1, generatedTokens: 12, isComputed: true },
    { kind: "sent", request: 3, endpointId: "gone", promptTokens: 5, prefix: { hashes: [], tokensPerBlock: 64 } },
    { kind: "ended", request: 2, generatedTokens: 0, isComputed: false },
  ],
};
const message: ExchangeMessage = {
  from: "worker-1",
  life: 4_294_967_295,
  sequence: 12,
  isWhole: true,
  pools: new Map([
    ["chat", work],
    ["empty", { ...work, endpoints: {}, cache: [] }],
  ]),
  keys: new Map([["team", { requests: 12, tokens: -40 }]]),
};

describe("a message as bytes", () => {
  it("comes back as it was", () => {
    expect(decodeMessage(encodeMessage(message))).toEqual(message);
  });

  it("may lie anywhere in a buffer", () => {
    const bytes = encodeMessage(message);
    for (let offset = 0; offset < 8; offset++) {
      const buffer = Buffer.alloc(bytes.length + 16);
      buffer.set(bytes, offset);
      expect(decodeMessage(buffer.subarray(offset, offset + bytes.length))).toEqual(message);
    }
  });

  it("is as long as its numbers, and little more", () => {
    const endpoints = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`endpoint-${i}`, idle]));
    const one = { ...message, pools: new Map([["chat", { ...work, endpoints, cache: [] }]]) };
    expect(encodeMessage(one).length).toBeLessThan(100 * (20 * 8 + 16) + 300);
  });

  it("of another protocol is not heard", () => {
    const bytes = encodeMessage(message);
    bytes[0] = 2;
    expect(decodeMessage(bytes)).toBeUndefined();
  });

  it("that is cut short, or is none, is not heard", () => {
    const bytes = encodeMessage(message);
    for (let length = 0; length < bytes.length; length += 3)
      expect(decodeMessage(bytes.subarray(0, length))).toBeUndefined();
  });

  it("with any byte changed is heard or not, and nothing worse", () => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 0, max: 255 }), (at, value) => {
        const bytes = encodeMessage(message);
        bytes[at % bytes.length] = value;
        const heard = decodeMessage(bytes);
        expect(heard === undefined || heard.pools instanceof Map).toBe(true);
      }),
      { seed: 1, numRuns: 500 },
    );
  });
});
