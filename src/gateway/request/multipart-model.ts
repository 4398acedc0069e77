import type { ValueRange } from "./json-bytes.ts";

/**
 * Where the value of the field `model` lies in a multipart body (RFC 7578), wherever the field stands. Files are
 * passed over at the speed of a byte search.
 * @returns undefined: the body is none of this kind, or has no such field.
 */
export function findMultipartModel(contentType: string, body: Buffer): ValueRange | undefined {
  const [, quoted, plain] = BOUNDARY.exec(contentType) ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined) return undefined;
  const delimiter = Buffer.from(`\r\n--${boundary}`, "latin1");
  const behind = (at: number): number => (at === -1 ? -1 : at + delimiter.length);
  // The first delimiter may have no line before it.
  const startsAtOnce = body.subarray(0, delimiter.length - 2).equals(delimiter.subarray(2));
  let partAt = behind(startsAtOnce ? -2 : body.indexOf(delimiter));
  for (let parts = 0; partAt !== -1 && parts < MAX_PARTS; parts++) {
    const headEnd = body.subarray(0, partAt + MAX_HEAD_BYTES).indexOf(HEAD_END, partAt);
    const bodyEnd = body.indexOf(delimiter, headEnd === -1 ? partAt : headEnd);
    if (headEnd !== -1 && bodyEnd !== -1 && IS_MODEL.test(body.toString("latin1", partAt, headEnd))) {
      return { from: headEnd + HEAD_END.length, to: bodyEnd };
    }
    partAt = behind(bodyEnd);
  }
  return undefined;
}

const BOUNDARY = /^multipart\/form-data\s*;.*?\bboundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i;
const IS_MODEL = /^content-disposition:[^\r\n]*;\s*name=(?:"model"|model)\s*(?:;|\r|$)/im;
const HEAD_END = Buffer.from("\r\n\r\n");
/** A part's head is one or two lines. */
const MAX_HEAD_BYTES = 8_192;
/** Transcription forms have about ten fields. */
const MAX_PARTS = 200;
