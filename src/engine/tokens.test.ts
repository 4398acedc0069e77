import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seededRandom } from "../core/index.ts";
import { chatPrompt } from "./prompt.ts";
import { generateReply } from "./reply.ts";
import { blockHashes, digest, MEDIA_TOKENS, tokenize } from "./tokens.ts";

const NOTHING = new Uint32Array();

function hashesOf(text: string, scope = "m"): number[] {
  return blockHashes(tokenize([{ text }]), NOTHING, scope);
}

describe("tokenize", () => {
  it.each([
    ["", 0],
    ["abcd", 1],
    ["abcde", 2],
    ["äöü", 2],
    ["日本", 2],
    ["🚢", 1],
  ])("takes a token per four UTF-8 bytes of '%s'", (text, expected) => {
    expect(tokenize([{ text }])).toHaveLength(expected);
  });

  it("starts each part on a token of its own", () => {
    expect([...tokenize([{ text: "abcde" }, { text: "fg" }])]).toEqual([
      ...tokenize([{ text: "abcd" }]),
      ...tokenize([{ text: "e   " }]),
      ...tokenize([{ text: "fg  " }]),
    ]);
  });

  it("counts media as a constant and tells them apart", () => {
    const small = tokenize([{ media: "a" }]);
    const large = tokenize([{ media: "b".repeat(100_000) }]);
    expect([small.length, large.length]).toEqual([MEDIA_TOKENS, MEDIA_TOKENS]);
    expect(digest(small)).not.toBe(digest(large));
  });
});

describe("blockHashes", () => {
  it("covers full blocks of 16 tokens only", () => {
    expect(hashesOf("x".repeat(63))).toHaveLength(1);
    expect(hashesOf("x".repeat(60))).toHaveLength(0);
    expect(hashesOf("x".repeat(200))).toHaveLength(3);
  });

  it("agrees exactly as far as the texts do", () => {
    const text = fc.string({ minLength: 64, maxLength: 600 });
    fc.assert(
      fc.property(text, text, (shared, rest) => {
        const [a, b] = [hashesOf(`${shared}${rest}`), hashesOf(`${shared}!${rest}`)];
        const sharedBlocks = Math.floor(Buffer.byteLength(shared) / 64);
        expect(a.slice(0, sharedBlocks)).toEqual(b.slice(0, sharedBlocks));
        expect(new Set([...a, ...b]).size).toBeGreaterThanOrEqual(Math.max(a.length, b.length));
      }),
    );
    const [left, right] = [hashesOf("a".repeat(640)), hashesOf(`${"a".repeat(128)}b${"a".repeat(511)}`)];
    expect(left.map((hash, depth) => hash === right[depth])).toEqual([true, true, ...Array(8).fill(false)]);
  });

  it("keeps scopes apart", () => {
    expect(hashesOf("x".repeat(64), "m")).not.toEqual(hashesOf("x".repeat(64), "m\nsalt"));
  });

  it("continues from prompt to output as if it were one text", () => {
    const all = tokenize([{ text: "0123456789abcdef".repeat(12) }]);
    for (const cut of [0, 7, 16, 40, all.length]) {
      expect(blockHashes(all.subarray(0, cut), all.subarray(cut), "m")).toEqual(blockHashes(all, NOTHING, "m"));
    }
  });

  it("finds a whole reply again in the next turn's prompt", () => {
    const question = { role: "user", content: "How far is it to the keel?" };
    const prompt = tokenize(chatPrompt([question]));
    const reply = generateReply(50, seededRandom(3));
    const first = blockHashes(prompt, reply.tokens, "m");
    const second = tokenize(
      chatPrompt([question, { role: "assistant", content: reply.pieces.join("") }, { role: "user", content: "And?" }]),
    );
    expect(blockHashes(second, NOTHING, "m").slice(0, first.length)).toEqual(first);
    expect(first.length).toBe(Math.floor((prompt.length + 50) / 16));
  });
});
