import type { IncomingMessage } from "node:http";
import { promisify } from "node:util";
import * as zlib from "node:zlib";
import { type Watchdog, Watched } from "../watchdog.ts";

/** A body, whole, or why there is none. */
export type ReceivedBody =
  | {
      readonly kind: "received";
      readonly sent: Buffer;
      /** Undefined: its content-encoding is one that cannot be looked into. */
      readonly decoded: Buffer | undefined;
    }
  | { readonly kind: "too_large" }
  /** It was not whole in time. */
  | { readonly kind: "late" }
  /** The client left before it was whole. */
  | { readonly kind: "cut" }
  | { readonly kind: "undecodable"; readonly cause: string };

/** What a body may take. */
export interface BodyLimits {
  /** As sent, and again once decoded. */
  readonly bytes: number;
  /** On the watchdog's clock. */
  readonly deadlineMs: number;
}

/** Whether a request says of itself that its body is over the limit. */
export function declaresTooMuch(request: IncomingMessage, limitBytes: number): boolean {
  return Number(request.headers["content-length"] ?? 0) > limitBytes;
}

/** Reads a request's body within its limits, as sent and again once decoded. */
export async function receiveBody(
  request: IncomingMessage,
  limits: BodyLimits,
  watchdog: Watchdog,
): Promise<ReceivedBody> {
  if (declaresTooMuch(request, limits.bytes)) return { kind: "too_large" };
  const sent = await new BodyCollector(request, limits, watchdog).collect();
  if (typeof sent === "string") return { kind: sent };
  const coding = request.headers["content-encoding"]?.toLowerCase();
  if (coding === undefined || coding === "identity" || sent.length === 0)
    return { kind: "received", sent, decoded: sent };
  return decode(sent, coding, limits.bytes);
}

type Collected = Buffer | "too_large" | "late" | "cut";

class BodyCollector extends Watched {
  readonly #request: IncomingMessage;
  readonly #limitBytes: number;
  readonly #watchdog: Watchdog;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #settle: (collected: Collected) => void = () => {};

  constructor(request: IncomingMessage, limits: BodyLimits, watchdog: Watchdog) {
    super();
    this.#request = request;
    this.#limitBytes = limits.bytes;
    this.#watchdog = watchdog;
    this.deadlineMs = limits.deadlineMs;
  }

  collect(): Promise<Collected> {
    return new Promise((resolve) => {
      this.#settle = resolve;
      this.#watchdog.watch(this);
      this.#request.on("data", this.#keep);
      this.#request.once("end", () => this.#over(this.#whole()));
      this.#request.once("error", () => this.#over("cut"));
      this.#request.once("close", () => this.#over("cut"));
    });
  }

  expired(): void {
    this.#over("late");
  }

  readonly #keep = (chunk: Buffer): void => {
    this.#bytes += chunk.length;
    if (this.#bytes <= this.#limitBytes) this.#chunks.push(chunk);
    else this.#over("too_large");
  };

  #whole(): Buffer {
    const [first = NO_BYTES, ...others] = this.#chunks;
    return others.length === 0 ? first : Buffer.concat(this.#chunks, this.#bytes);
  }

  /** The first end counts: a request that was read to its end is closed afterwards as well. */
  #over(collected: Collected): void {
    this.#watchdog.unwatch(this);
    this.#request.off("data", this.#keep);
    this.#settle(collected);
  }
}

const NO_BYTES = Buffer.alloc(0);

type Decoder = (body: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>;

const DECODERS: ReadonlyMap<string, Decoder> = new Map(
  Object.entries({
    gzip: zlib.gunzip,
    "x-gzip": zlib.gunzip,
    deflate: zlib.inflate,
    br: zlib.brotliDecompress,
    // Node has it from 22.15 on.
    ...("zstdDecompress" in zlib && { zstd: zlib.zstdDecompress as typeof zlib.gunzip }),
  }).map(([coding, decoder]) => [coding, promisify(decoder as typeof zlib.gunzip) as Decoder]),
);

async function decode(sent: Buffer, coding: string, limitBytes: number): Promise<ReceivedBody> {
  const decoder = DECODERS.get(coding);
  if (decoder === undefined) return { kind: "received", sent, decoded: undefined };
  try {
    return { kind: "received", sent, decoded: await decoder(sent, { maxOutputLength: limitBytes }) };
  } catch (error) {
    if (error instanceof RangeError) return { kind: "too_large" };
    return { kind: "undecodable", cause: `The body is not valid ${coding}.` };
  }
}
