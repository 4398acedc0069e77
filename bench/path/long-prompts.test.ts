import { describe, expect, it } from "vitest";
import { longPrompts } from "./long-prompts.ts";

describe("longPrompts", () => {
  it("makes bodies of 400 kB, whatever their text and turns", () => {
    for (const { name, body } of longPrompts()) {
      expect(Math.abs(Buffer.byteLength(body) / 400_000 - 1), name).toBeLessThan(0.02);
    }
  });

  it("has letters of many bytes and escapes in mixed texts alone", () => {
    for (const { name, body } of longPrompts()) {
      const isMixed = name.startsWith("mixed");
      expect(Buffer.byteLength(body) > body.length, name).toBe(isMixed);
      expect(body.includes("\\n"), name).toBe(isMixed);
    }
  });
});
