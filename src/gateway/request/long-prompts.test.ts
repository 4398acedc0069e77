import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { countPromptTokens } from "./prompt-size.ts";
import { readRequest } from "./read-request.ts";

const MB = 1_000_000;
const chat = (content: unknown): Buffer =>
  Buffer.from(JSON.stringify({ model: "m", messages: [{ role: "user", content }] }));

/** Prompts of about so many bytes of each kind that has once cost somebody more than their length. */
const KINDS: readonly { readonly what: string; readonly body: (bytes: number) => Buffer }[] = [
  { what: "one letter", body: (bytes) => chat("a".repeat(bytes)) },
  { what: "base64", body: (bytes) => chat(randomBytes((bytes * 3) / 4).toString("base64")) },
  { what: "blanks", body: (bytes) => chat(" ".repeat(bytes)) },
  { what: "escapes", body: (bytes) => chat("\u0001".repeat(bytes / 6)) },
  { what: "beginnings of data URLs", body: (bytes) => chat("data:image/png;base64,".repeat(bytes / 22)) },
  { what: "many small parts", body: (bytes) => chat(Array(Math.floor(bytes / 30)).fill({ type: "text", text: "ab" })) },
  {
    what: "token ids",
    body: (bytes) => Buffer.from(JSON.stringify({ prompt: Array(Math.floor(bytes / 6)).fill(12_345) })),
  },
];

/** What routing does with a body, in ms: the least of several tries, which other work on the machine disturbs least. */
function readMs(body: Buffer): number {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 4; i++) {
    const startedMs = performance.now();
    const facts = readRequest(body.includes('"messages"') ? "chat" : "completions", body);
    if (!facts.isReadable) throw new Error(facts.message);
    facts.hashPrefix(countPromptTokens(facts.prompt, 4));
    least = Math.min(least, performance.now() - startedMs);
  }
  return least;
}

describe("a prompt of megabytes", () => {
  it.each(KINDS)("of $what costs time in proportion to its length", ({ body }) => {
    readMs(body(MB));
    // Eight times the bytes; four times that for whatever the machine does besides. A quadratic cost would be 64 times.
    expect(readMs(body(8 * MB))).toBeLessThan(4 * 8 * readMs(body(MB)));
  });
});
