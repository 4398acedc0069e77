import type { Transform } from "node:stream";
import * as zlib from "node:zlib";
import { BodyBuffer, type Kept } from "./body-buffer.ts";
import type { BufferShare } from "./buffer-budget.ts";

/** A body without its coding, or why there is none. */
export type DecodedBody = Buffer | Exclude<Kept, "kept"> | "undecodable";

/** Whether bodies in this content-encoding can be looked into. */
export function canDecode(coding: string): boolean {
  return DECODERS.has(coding);
}

/**
 * Decodes within the limit and the budget, which are asked at every piece: a body of a few bytes may stand for
 * thousands of times as many.
 */
export async function decodeBody(
  sent: Buffer,
  coding: string,
  limitBytes: number,
  share: BufferShare,
): Promise<DecodedBody> {
  const decoder = DECODERS.get(coding)?.() as Transform;
  const body = new BodyBuffer(limitBytes, undefined, share);
  decoder.end(sent);
  try {
    for await (const piece of decoder) {
      const kept = body.append(piece as Buffer);
      if (kept === "kept") continue;
      body.discard();
      return kept;
    }
  } catch {
    body.discard();
    return "undecodable";
  }
  return body.take();
}

const DECODERS: ReadonlyMap<string, () => Transform> = new Map(
  Object.entries({
    gzip: zlib.createGunzip,
    "x-gzip": zlib.createGunzip,
    deflate: zlib.createInflate,
    br: zlib.createBrotliDecompress,
    // Node has it from 22.15 on.
    ...("createZstdDecompress" in zlib && { zstd: zlib.createZstdDecompress as () => Transform }),
  }),
);
