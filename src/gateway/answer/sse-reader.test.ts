import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_EVENT_BYTES, SseReader } from "./sse-reader.ts";

interface Seen {
  readonly name: string;
  readonly data: string;
  readonly raw: string;
}

/** Reads a text given in chunks that end at the given bytes. */
function read(text: string, cuts: readonly number[] = []): Seen[] {
  const bytes = Buffer.from(text);
  const seen: Seen[] = [];
  const reader = new SseReader((event) => {
    seen.push({
      name: event.name,
      data: event.bytes.toString("utf8", event.start, event.end),
      raw: bytes.toString("utf8", event.streamFrom, event.streamTo),
    });
  });
  let from = 0;
  for (const cut of [...cuts, bytes.length]) {
    reader.push(bytes.subarray(from, cut));
    from = cut;
  }
  reader.end();
  return seen;
}

const named = (seen: readonly Seen[]): string[] => seen.map(({ name, data }) => `${name}|${data}`);

describe("SseReader", () => {
  it.each([
    ["LF", "data: a\n\ndata: b\n\n", ["|a", "|b"]],
    ["CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", ["|a", "|b"]],
    ["CR", "data: a\r\rdata: b\r\r", ["|a", "|b"]],
    ["mixed line ends", "data: a\r\n\ndata: b\r\r\n", ["|a", "|b"]],
    ["no space after the colon", "data:a\n\n", ["|a"]],
    ["one of two spaces", "data:  a\n\n", ["| a"]],
    ["names", "event: ping\ndata: a\n\ndata: b\n\n", ["ping|a", "|b"]],
    ["a name after the data", "data: a\nevent: late\n\n", ["late|a"]],
    ["data of several lines", "data: a\ndata\ndata: b\n\n", ["|a\n\nb"]],
    ["empty data", "data:\n\ndata\n\n", ["|", "|"]],
    ["comments", ": ping\n\n:\ndata: a\n: more\n\n", ["|a"]],
    ["other fields", "id: 1\nretry: 5\ndatax: no\ndata: a\n\n", ["|a"]],
    ["an event without data", "event: ping\n\ndata: a\n\n", ["|a"]],
    ["a byte-order mark", "\ufeffdata: a\n\n\ufeffdata: b\n\n", ["|a"]],
    ["a last event without its blank line", "data: a\n\ndata: b\n", ["|a", "|b"]],
    ["a last event without its line end", "data: a\n\ndata: b", ["|a", "|b"]],
    ["text of many bytes a letter", "data: größe€😀\n\n", ["|größe€😀"]],
    ["nothing", "", []],
  ])("reads %s however it is cut", (_, text, expected) => {
    const length = Buffer.byteLength(text);
    expect(named(read(text))).toEqual(expected);
    for (let cut = 0; cut <= length; cut++) expect(named(read(text, [cut]))).toEqual(expected);
    const everyByte = Array.from({ length }, (_unused, i) => i);
    expect(named(read(text, everyByte))).toEqual(expected);
  });

  it("agrees with a plain reading of the standard on any text and any cuts", () => {
    const piece = fc.constantFrom("data:", "data: ", "event:", "id: 1", ":", "x", "é", "\n", "\n\n", "\r", "\r\n", " ");
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), fc.array(fc.nat(100)), (pieces, cuts) => {
        const text = pieces.join("");
        const length = Buffer.byteLength(text);
        const inside = cuts.filter((cut) => cut <= length).sort((a, b) => a - b);
        expect(named(read(text, inside))).toEqual(readPlainly(text));
      }),
      { numRuns: 2000 },
    );
  });

  it("tells where each event lies", () => {
    const events = ["data: a\n\n", ": c\n\n", "event: x\r\ndata: b\r\n\r\n", "data: größe\n\n"];
    const raw = ["data: a\n\n", "event: x\r\ndata: b\r\n\r\n", "data: größe\n\n"];
    const text = events.join("");
    for (let cut = 0; cut <= Buffer.byteLength(text); cut++) {
      // A LF that comes in a later chunk than its CR is not part of the event yet.
      expect(read(text, [cut]).map((event) => event.raw.trimEnd())).toEqual(raw.map((event) => event.trimEnd()));
    }
    expect(read(text).map((event) => event.raw)).toEqual(raw);
  });

  it.each([
    ["data: a\n\n", 0],
    ["data: a\n\n: ping\n", 0],
    ["data: a\n\n: pi", 4],
    ["data: a\n\ndata", 4],
    ["data: a\n\ndata: b\n", 8],
    ["data: a\n\ndata: b\n: ping\n", 15],
  ])("knows of %j how many bytes belong to an open event", (text, open) => {
    const reader = new SseReader(() => {});
    reader.push(Buffer.from(text));
    expect(reader.streamBytes - reader.openEventFrom).toBe(open);
  });

  it.each([
    ["a line", "data: x".padEnd(MAX_EVENT_BYTES + 10, "x")],
    ["lines", "data: xxxxxxxxx\n".repeat(MAX_EVENT_BYTES / 8).trimEnd()],
  ])("lets go of an event whose %s pass the bound and reads on", (_, text) => {
    const sizes: string[] = [];
    const reader = new SseReader((event) => sizes.push(event.isOversized ? "oversized" : `${event.end - event.start}`));
    const bytes = Buffer.from(`${text}\ndata: more\n\ndata: after\n\n`);
    for (let at = 0; at < bytes.length; at += 60_000) reader.push(bytes.subarray(at, at + 60_000));
    reader.end();
    expect(sizes).toEqual(["oversized", "5"]);
  });

  it("keeps nothing of an endless line", () => {
    const reader = new SseReader(() => {});
    const chunk = Buffer.alloc(65_536, "x");
    const before = process.memoryUsage().arrayBuffers;
    for (let i = 0; i < 1024; i++) reader.push(chunk);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(8 * MAX_EVENT_BYTES);
  });
});

/** HTML, 9.2.6, word for word and without any care for speed, but that a last event needs no blank line. */
function readPlainly(text: string): string[] {
  const events: string[] = [];
  let name = "";
  let data: string[] = [];
  for (const line of [...text.split(/\r\n|\r|\n/), ""]) {
    if (line === "") {
      if (data.length > 0) events.push(`${name}|${data.join("\n")}`);
      name = "";
      data = [];
      continue;
    }
    const [, field, value = ""] = /^([^:]*)(?:: ?(.*))?$/.exec(line) ?? [];
    if (field === "data") data.push(value);
    if (field === "event") name = Buffer.from(value).toString("latin1");
  }
  return events;
}
