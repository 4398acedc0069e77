import type { ValueRange } from "./json-bytes.ts";

/**
 * Where the value of the field `model` lies in a multipart body (RFC 7578), wherever the field stands. Files are
 * passed over at the speed of a byte search.
 * @returns undefined: the body is none of this kind, has no such field, or could be read in two ways: a key that may
 * use one model must not reach another by a second field, or by one that is written so that only its endpoint finds it.
 */
export function findMultipartModel(contentType: string, body: Buffer): ValueRange | undefined {
  const boundary = boundaryOf(contentType);
  if (boundary === undefined) return undefined;
  const delimiter = Buffer.from(`\r\n--${boundary}`, "latin1");
  // The first delimiter may have no line before it.
  const startsAtOnce = body.subarray(0, delimiter.length - 2).equals(delimiter.subarray(2));
  let found: ValueRange | undefined;
  let delimiterAt = startsAtOnce ? -2 : body.indexOf(delimiter);
  for (let parts = 0; parts <= MAX_PARTS; parts++) {
    const partAt = delimiterAt + delimiter.length;
    if (body[partAt] === HYPHEN && body[partAt + 1] === HYPHEN) return found;
    const headEnd = body.subarray(0, partAt + MAX_HEAD_BYTES).indexOf(HEAD_END, partAt);
    delimiterAt = headEnd === -1 ? -1 : body.indexOf(delimiter, headEnd);
    const name = delimiterAt === -1 ? undefined : nameIn(body.toString("latin1", partAt, headEnd));
    if (name === undefined || (name === "model" && found !== undefined)) return undefined;
    if (name === "model") found = { from: headEnd + HEAD_END.length, to: delimiterAt };
  }
  return undefined;
}

function boundaryOf(contentType: string): string | undefined {
  const [, quoted, plain] = BOUNDARY.exec(contentType) ?? [];
  return contentType.match(BOUNDARY_NAMES)?.length === 1 ? (quoted ?? plain) : undefined;
}

/** The name of a part. Undefined: its head does not say it in the one way in which clients do. */
function nameIn(head: string): string | undefined {
  const [atOnce, ...lines] = head.split("\r\n");
  const [disposition, ...others] = lines.filter((line) => IS_DISPOSITION.test(line));
  if (atOnce !== "" || others.length > 0 || lines.some((line) => IS_ODD.test(line))) return undefined;
  const [, quoted, plain, further = ""] = NAME.exec(disposition ?? "") ?? [];
  const unquoted = further.replaceAll(QUOTED, "");
  return unquoted.includes('"') || NAMES_AGAIN.test(unquoted) ? undefined : (quoted ?? plain);
}

const BOUNDARY = /^multipart\/form-data\s*;.*?\bboundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i;
const BOUNDARY_NAMES = /\bboundary[\s*\d]*=/gi;
const IS_DISPOSITION = /^content-disposition/i;
/** Folded, or with an escape, which is read in as many ways as there are parsers. */
const IS_ODD = /^[ \t]|\\/;
const NAME = /^content-disposition:[ \t]*form-data[ \t]*;[ \t]*name=(?:"([^"]*)"|([^\s";]+))[ \t]*(;.*)?$/i;
const QUOTED = /"[^"]*"/g;
/** A second name, or one in the extended form (RFC 7578, 4.2 forbids it). */
const NAMES_AGAIN = /(?:^|[;\s])name[\s*\d]*=/i;
const HEAD_END = Buffer.from("\r\n\r\n");
const HYPHEN = 0x2d;
/** A part's head is one or two lines. */
const MAX_HEAD_BYTES = 8_192;
/** Transcription forms have about ten fields. */
const MAX_PARTS = 200;
