import { NumberReader, NumberWriter } from "./number-list.ts";
import { readWork, type WorkHead, writeWork } from "./work-codec.ts";
import { EXCHANGE_PROTOCOL, type ExchangeMessage } from "./work-exchange.ts";

/** What of a message is not numbers, as JSON. */
interface MessageHead {
  readonly from: string;
  readonly life: number;
  readonly sequence: number;
  readonly isWhole: boolean;
  readonly pools: readonly WorkHead[];
  /** Ids. */
  readonly keys: readonly string[];
}

/**
 * A message as bytes: two words, protocol and length of the head in bytes; the head, as JSON; from the next multiple of
 * eight on the numbers, as doubles. Names are few and JSON is quick with them, numbers are many.
 * @param out Where numbers are gathered; who encodes often passes the same one.
 */
export function encodeMessage(message: ExchangeMessage, out: NumberWriter = new NumberWriter()): Uint8Array {
  const { from, life, sequence, isWhole, pools, keys } = message;
  out.clear();
  const works = [...pools].map(([name, work]) => writeWork(name, work, out));
  for (const { requests, tokens } of keys.values()) {
    out.push(requests);
    out.push(tokens);
  }
  const head: MessageHead = { from, life, sequence, isWhole, pools: works, keys: [...keys.keys()] };
  return bytesOf(new TextEncoder().encode(JSON.stringify(head)), out.numbers);
}

/** Undefined: it is of another protocol, or no message. */
export function decodeMessage(bytes: Uint8Array): ExchangeMessage | undefined {
  if (bytes.length < WORDS_BYTES) return undefined;
  // Words are in the machine's own order: one of the other order reads another protocol.
  const [protocol, headBytes = 0] = new Uint32Array(copyOf(bytes.subarray(0, WORDS_BYTES)));
  if (protocol !== EXCHANGE_PROTOCOL) return undefined;
  try {
    const headEnd = WORDS_BYTES + headBytes;
    const head: MessageHead = JSON.parse(new TextDecoder().decode(bytes.subarray(WORDS_BYTES, headEnd)));
    return read(head, new NumberReader(new Float64Array(copyOf(bytes.subarray(aligned(headEnd))))));
  } catch {
    return undefined;
  }
}

function read({ pools, keys, ...head }: MessageHead, numbers: NumberReader): ExchangeMessage | undefined {
  const works = pools.map((work) => [work.name, readWork(work, numbers)] as const);
  const uses = keys.map((id) => [id, { requests: numbers.next(), tokens: numbers.next() }] as const);
  return numbers.isAtEnd ? { ...head, pools: new Map(works), keys: new Map(uses) } : undefined;
}

function bytesOf(head: Uint8Array, numbers: Float64Array): Uint8Array {
  const start = aligned(WORDS_BYTES + head.length);
  const bytes = new Uint8Array(start + numbers.byteLength);
  new Uint32Array(bytes.buffer, 0, 2).set([EXCHANGE_PROTOCOL, head.length]);
  bytes.set(head, WORDS_BYTES);
  new Float64Array(bytes.buffer, start).set(numbers);
  return bytes;
}

/** Words and doubles are read where they are aligned, which a part of another buffer need not be. */
function copyOf(bytes: Uint8Array): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / Float64Array.BYTES_PER_ELEMENT) * Float64Array.BYTES_PER_ELEMENT;
}

const WORDS_BYTES = 8;
