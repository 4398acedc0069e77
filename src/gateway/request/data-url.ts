/** A stretch of text, or one data URL inside it. */
export interface TextPiece {
  readonly text: string;
  readonly isDataUrl: boolean;
}

/** A data URL shorter than this counts as the text it is: it costs less than a media item does. */
const MIN_DATA_URL_UNITS = 4096;

const MARK = ";base64,";

/** The longest media type that is looked for before the mark: `data:` and a type with parameters. */
const MAX_HEAD_UNITS = 128;

/** Takes long base64 data URLs out of plain text, in time linear in its length. Most text has none: then it is one piece. */
export function splitDataUrls(text: string): readonly TextPiece[] {
  let mark = text.length < MIN_DATA_URL_UNITS ? -1 : text.indexOf(MARK);
  if (mark === -1) return [{ text, isDataUrl: false }];
  const pieces: TextPiece[] = [];
  let from = 0;
  while (mark !== -1) {
    const end = endOfBase64(text, mark + MARK.length);
    const start = startOfDataUrl(text, Math.max(from, mark - MAX_HEAD_UNITS), mark);
    if (start !== undefined && end - start >= MIN_DATA_URL_UNITS) {
      if (start > from) pieces.push({ text: text.slice(from, start), isDataUrl: false });
      pieces.push({ text: text.slice(start, end), isDataUrl: true });
      from = end;
    }
    mark = text.indexOf(MARK, end);
  }
  if (from < text.length) pieces.push({ text: text.slice(from), isDataUrl: false });
  return pieces;
}

function startOfDataUrl(text: string, from: number, mark: number): number | undefined {
  const at = text.slice(from, mark).lastIndexOf("data:");
  return at === -1 ? undefined : from + at;
}

function endOfBase64(text: string, from: number): number {
  NOT_BASE64.lastIndex = from;
  return NOT_BASE64.test(text) ? NOT_BASE64.lastIndex - 1 : text.length;
}

/** Neither in one of the alphabets of RFC 4648 nor padding. */
const NOT_BASE64 = /[^A-Za-z0-9+/\-_=]/g;
