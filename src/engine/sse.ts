/** An event without a name, as OpenAI's older streams use it. */
export function dataEvent(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

/** An event whose name is repeated as the `type` of its data. */
export function namedEvent(type: string, fields: object): string {
  return `event: ${type}\n${dataEvent({ type, ...fields })}`;
}

/** End of an OpenAI stream. */
export const DONE = "data: [DONE]\n\n";

const GAP = "@piece@";

/** Builds the events of one choice, which differ in a piece of text only: JSON is written once, not per token. */
export function pieceTemplate(event: (piece: string) => string): (piece: string) => string {
  const sample = event(GAP);
  const at = sample.lastIndexOf(GAP);
  const head = sample.slice(0, at);
  const tail = sample.slice(at + GAP.length);
  // Pieces are plain letters and spaces, which JSON writes as they are.
  return (piece) => head + piece + tail;
}
