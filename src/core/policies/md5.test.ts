import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { md5 } from "./md5.ts";

describe("md5", () => {
  it.each([
    ["", "d41d8cd98f00b204e9800998ecf8427e"],
    ["a", "0cc175b9c0f1b6a831c399e269772661"],
    ["abc", "900150983cd24fb0d6963f7d28e17f72"],
    ["message digest", "f96b697d7cb7938d525a2f31aaf161d0"],
    ["abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"],
    ["ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "d174ab98d277d9f5a5611c2c9f419d9f"],
    ["1234567890".repeat(8), "57edf4a22be3c955ac49da2e2107b67a"],
  ])("gives RFC 1321's digest of %j", (text, digest) => {
    expect(hex(text)).toBe(digest);
  });

  it.each([55, 56, 63, 64, 65, 119, 120])("pads %i bytes as the platform's own does", (length) => {
    expect(hex("x".repeat(length))).toBe(platformHex("x".repeat(length)));
  });

  it("agrees with the platform's own on any text, lone surrogates included", () => {
    const text = fc.oneof(fc.string({ unit: "binary", maxLength: 200 }), fc.constantFrom("\ud800", "a\udc00b", "é€😀"));
    fc.assert(
      fc.property(text, (given) => hex(given) === platformHex(given)),
      { seed: 1, numRuns: 300 },
    );
  });
});

function hex(text: string): string {
  return Array.from(md5(text), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function platformHex(text: string): string {
  return createHash("md5").update(text).digest("hex");
}
