import { findMember, skipSpace, type ValueRange } from "./json-bytes.ts";

/**
 * Edits of a request body that leave every other byte as the client sent it: unknown fields, key order, spacing and
 * escapes reach the endpoint untouched. All take a body that was read as a JSON object before.
 */

/** Puts another name in place of the top-level `model`, or adds it where the client named none. */
export function replaceModel(body: Buffer, model: string): Buffer {
  return setMember(body, skipSpace(body, 0), "model", JSON.stringify(model));
}

/**
 * Sets `stream_options.include_usage`, keeping the other stream options. A body whose `stream_options` is neither an
 * object nor null comes back as it is: it is for the endpoint to refuse.
 */
export function askForUsage(body: Buffer): Buffer {
  const objectAt = skipSpace(body, 0);
  // Most bodies have no such option: a search for its name costs a small part of walking through the members.
  const options = body.includes(QUOTED_STREAM_OPTIONS) ? findMember(body, objectAt, STREAM_OPTIONS) : undefined;
  if (options === undefined) return addMember(body, objectAt, STREAM_OPTIONS, ASKING);
  if (body[options.from] === OPEN_BRACE) return setMember(body, options.from, "include_usage", "true");
  return body[options.from] === LETTER_N ? splice(body, options, ASKING) : body;
}

const STREAM_OPTIONS = "stream_options";
/** With its quotes, which are rarer in a text than the letters, so that a search passes over more of it at a time. */
const QUOTED_STREAM_OPTIONS = Buffer.from(`"${STREAM_OPTIONS}"`);
const ASKING = '{"include_usage":true}';
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
/** Of JSON's values only null begins with it. */
const LETTER_N = 0x6e;

function setMember(body: Buffer, objectAt: number, name: string, value: string): Buffer {
  const old = findMember(body, objectAt, name);
  return old === undefined ? addMember(body, objectAt, name, value) : splice(body, old, value);
}

/** The new member comes first, where its place is known without reading the rest. */
function addMember(body: Buffer, objectAt: number, name: string, value: string): Buffer {
  const inside = objectAt + 1;
  const comma = body[skipSpace(body, inside)] === CLOSE_BRACE ? "" : ",";
  return splice(body, { from: inside, to: inside }, `${JSON.stringify(name)}:${value}${comma}`);
}

function splice(body: Buffer, { from, to }: ValueRange, replacement: string): Buffer {
  return Buffer.concat([body.subarray(0, from), Buffer.from(replacement), body.subarray(to)]);
}
