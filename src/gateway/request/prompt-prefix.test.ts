import { describe, expect, it } from "vitest";
import { BLOCK_UNITS, PrefixHasher } from "../../core/index.ts";
import type { PromptPart } from "./prompt-part.ts";
import { hashPrompt } from "./prompt-prefix.ts";

const SCOPE = ["m", undefined, "salt"];

const text = (text: string): PromptPart => ({ kind: "text", text });

function hashesOf(texts: readonly string[]): readonly number[] | undefined {
  const hasher = new PrefixHasher(SCOPE);
  for (const each of texts) hasher.update(each);
  return hasher.finish(1)?.hashes;
}

describe("hashPrompt", () => {
  it.each([
    ["short parts", Array.from({ length: 99 }, (_, i) => "so short".slice(i % 9))],
    ["long parts", ["a".repeat(700), "b".repeat(20_001), "c".repeat(9_000)]],
    [
      "letters of other scripts",
      ["größer ".repeat(80), "語".repeat(900), "x".repeat(30_000), "\ud83d\ude00".repeat(5_000)],
    ],
    ["halves of letters", ["\udc00".repeat(600), "\ud83d"]],
  ])("hashes %s as they are, unit by unit", (_, texts) => {
    const prefix = hashPrompt(texts.map(text), SCOPE, 1000);
    expect(prefix?.hashes).toEqual(hashesOf(texts));
    expect(prefix?.hashes).toHaveLength(Math.floor(texts.join("").length / BLOCK_UNITS));
  });

  it("hashes one prompt after the other, whatever the one before has left", () => {
    const parts = [text("a".repeat(300))];
    const first = hashPrompt(parts, SCOPE, 100);
    hashPrompt([text("b".repeat(10_000))], SCOPE, 100);
    expect(hashPrompt(parts, SCOPE, 100)).toEqual(first);
  });

  it("takes a token id for two units", () => {
    const ids = Array.from({ length: 10_000 }, (_, i) => i * 13);
    const hashes = hashPrompt([{ kind: "tokens", ids }], SCOPE, ids.length)?.hashes;
    expect(hashes).toHaveLength(Math.floor((2 * ids.length) / BLOCK_UNITS));
    const longer = hashPrompt([{ kind: "tokens", ids: [...ids, 1, 2, 3] }], SCOPE, ids.length)?.hashes;
    expect(longer?.slice(0, hashes?.length)).toEqual(hashes);
    const other = hashPrompt([{ kind: "tokens", ids: ids.with(200, 1 << 16) }], SCOPE, ids.length)?.hashes;
    expect(other?.map((hash, block) => hash === hashes?.[block]).indexOf(false)).toBe(Math.floor(400 / BLOCK_UNITS));
  });
});
