import fc from "fast-check";
import { createStreamMeter } from "../../src/gateway/index.ts";
import { SAMPLE_STREAMS } from "../../test/support/sample-streams.ts";
import { anyShare, applied, cutAt, type Edited, editedText } from "./edits.ts";
import type { FuzzTarget } from "./target.ts";

type Dialect = Parameters<typeof createStreamMeter>[0];

interface ChunkedStream {
  readonly dialect: Dialect;
  readonly stream: Edited;
  readonly cuts: readonly number[];
  readonly dropUsageEvent: boolean;
}

const DIALECTS: readonly Dialect[] = ["chat", "completions", "messages", "responses", "embeddings"];
const STREAMS = SAMPLE_STREAMS.map(({ events }) => events.join(""));
const WORDS = [
  ...["\n", "\r", "\r\n", "\n\n", ":", ": comment\n", "data:", "data: ", "event: error\n", "event: ping\n", "id: 1\n"],
  ...[
    "data: [DONE]\n\n",
    '"usage":',
    '"choices":[]',
    '"error":{"message":"x","code":500}',
    '{"',
    "}",
    "null",
    "\ufeff",
  ],
  ...[
    'data: {"error":{"code":503}}\n\n',
    'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n',
  ],
];

/** Every stream, cut anywhere, reads as it does in one piece, and no byte of it changes. */
export const sse: FuzzTarget = {
  name: "SSE chunking",
  inputs: "streams of all dialects, changed and cut anywhere",
  open: async () => ({
    arbitrary: fc.record({
      dialect: fc.constantFrom(...DIALECTS),
      stream: editedText(STREAMS, WORDS),
      cuts: fc.array(anyShare, { maxLength: 12 }),
      dropUsageEvent: fc.boolean(),
    }),
    check: (input) => checkStream(input as ChunkedStream),
    close: async () => {},
  }),
};

function checkStream({ dialect, stream, cuts, dropUsageEvent }: ChunkedStream): void {
  const bytes = Buffer.from(applied(stream), "latin1");
  const whole = metered(dialect, [bytes], dropUsageEvent);
  const cut = metered(dialect, cutAt(bytes, cuts), dropUsageEvent);
  if (cut.said !== whole.said) throw new Error(`in pieces it says ${cut.said}, whole ${whole.said}`);
  if (!cut.forwarded.equals(whole.forwarded)) throw new Error("in pieces other bytes are passed on than whole");
  if (!dropUsageEvent && !whole.forwarded.equals(bytes)) throw new Error("bytes are changed");
  if (dropUsageEvent && !isPartOf(whole.forwarded, bytes)) throw new Error("bytes are passed on that never came");
}

interface Metered {
  readonly forwarded: Buffer;
  /** Everything that is read of the stream, as text. */
  readonly said: string;
}

function metered(dialect: Dialect, chunks: readonly Buffer[], dropUsageEvent: boolean): Metered {
  const meter = createStreamMeter(dialect, { dropUsageEvent });
  const reports = [...chunks.map((chunk) => meter.push(chunk)), meter.end()];
  const tokenEvents = reports.reduce((sum, report) => sum + report.tokenEvents, 0);
  const dataEvents = reports.reduce((sum, report) => sum + report.dataEvents, 0);
  const { usage, error, isDone, hasFinishReason } = meter;
  return {
    forwarded: Buffer.concat(reports.map(({ forward }) => forward)),
    said: JSON.stringify({ tokenEvents, dataEvents, usage, error, isDone, hasFinishReason }),
  };
}

/** Whether `part` is `whole` with some of it left out. */
function isPartOf(part: Buffer, whole: Buffer): boolean {
  let at = 0;
  for (const byte of part) {
    at = whole.indexOf(byte, at) + 1;
    if (at === 0) return false;
  }
  return true;
}
