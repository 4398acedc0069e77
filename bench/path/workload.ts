/** What every peer is put under. Client, origins and peers agree on it here. */
export interface Workload {
  /** Connections of the request phase, each with one request at a time. */
  readonly connections: number;
  readonly requestSeconds: number;
  /** Streams of the event phase, all open at the same time. */
  readonly streams: number;
  readonly eventsPerStream: number;
  readonly eventGapMs: number;
}

export const WORKLOAD: Workload = {
  connections: 32,
  requestSeconds: 3,
  streams: 300,
  eventsPerStream: 200,
  eventGapMs: 20,
};

export const PATH = "/v1/chat/completions";
export const MODEL = "bench";

/** Size of the body of every request. */
const BODY_BYTES = 2048;

/** A chat request of exactly 2 kB. The client does not ask for usage, as most do not. */
export function requestBody(isStream: boolean): string {
  const body = (content: string): string =>
    JSON.stringify({
      model: MODEL,
      stream: isStream,
      max_tokens: 256,
      messages: [
        { role: "system", content: "You answer in one sentence." },
        { role: "user", content },
      ],
    });
  return body("lorem ipsum ".repeat(BODY_BYTES).slice(0, BODY_BYTES - body("").length));
}

/** One event of a stream: a chat chunk of about 80 bytes with its blank line. */
export const EVENT: string = `data: ${JSON.stringify({
  id: "c",
  model: MODEL,
  choices: [{ index: 0, delta: { content: " token" } }],
})}\n\n`;

/** Last event of a stream. */
export const DONE_EVENT = "data: [DONE]\n\n";
