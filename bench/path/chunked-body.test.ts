import { describe, expect, it } from "vitest";
import { ChunkedBody } from "./chunked-body.ts";

const ENCODED = Buffer.from("5\r\nhello\r\n7;name=x\r\n, world\r\n0\r\n\r\n");

function decode(pieces: readonly Buffer[]): { readonly text: string; readonly isComplete: boolean } {
  let text = "";
  const body = new ChunkedBody((data) => {
    text += data.toString();
  });
  for (const piece of pieces) body.push(piece);
  return { text, isComplete: body.isComplete };
}

describe("ChunkedBody", () => {
  it("decodes wherever the body is cut", () => {
    for (let at = 0; at <= ENCODED.length; at++) {
      expect(decode([ENCODED.subarray(0, at), ENCODED.subarray(at)])).toEqual({
        text: "hello, world",
        isComplete: true,
      });
    }
  });

  it("decodes byte by byte", () => {
    const bytes = [...ENCODED].map((byte) => Buffer.of(byte));
    expect(decode(bytes)).toEqual({ text: "hello, world", isComplete: true });
  });

  it("is not complete before the last chunk", () => {
    expect(decode([ENCODED.subarray(0, 25)]).isComplete).toBe(false);
  });

  it("refuses a chunk without a size", () => {
    expect(() => decode([Buffer.from("HTTP/1.1 200 OK\r\n")])).toThrow("no size");
  });
});
