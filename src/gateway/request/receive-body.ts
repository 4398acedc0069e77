import type { IncomingMessage } from "node:http";
import { type Watchdog, Watched } from "../watchdog.ts";
import { BodyBuffer, type Kept } from "./body-buffer.ts";
import type { BufferShare } from "./buffer-budget.ts";
import { canDecode, decodeBody } from "./decode-body.ts";

/** A body, whole, or why there is none. */
export type ReceivedBody =
  | {
      readonly kind: "received";
      readonly sent: Buffer;
      /** Undefined: its content-encoding is one that cannot be looked into. */
      readonly decoded: Buffer | undefined;
    }
  | { readonly kind: NoBody }
  | { readonly kind: "undecodable"; readonly cause: string };

type NoBody =
  | Exclude<Kept, "kept">
  /** It was not whole in time. */
  | "late"
  /** The client left before it was whole. */
  | "cut"
  /** Its chunks are not framed as they must be. */
  | "malformed";

/** What a body may take. */
export interface BodyLimits {
  /** As sent, and again once decoded. */
  readonly bytes: number;
  /** When the request's head was there, on the watchdog's clock. */
  readonly arrivedAtMs: number;
  /** From then to its last byte; undefined: as long as it keeps coming. */
  readonly withinMs: number | undefined;
  /** What its bytes are counted in. It still holds them when the body was received. */
  readonly share: BufferShare;
}

/** Emitted by a request whose body cannot be read on: the parser tells the connection's server, not the request. */
export const MALFORMED_BODY = "malformedBody";

/** Whether a request says of itself that its body is over the limit. */
export function declaresTooMuch(request: IncomingMessage, limitBytes: number): boolean {
  return (declaredBytes(request) ?? 0) > limitBytes;
}

/** Reads a request's body within its limits, as sent and again once decoded. */
export function receiveBody(request: IncomingMessage, limits: BodyLimits, watchdog: Watchdog): Promise<ReceivedBody> {
  if (declaresTooMuch(request, limits.bytes)) return Promise.resolve({ kind: "too_large" });
  return new BodyCollector(request, limits, watchdog).collect();
}

/** Takes off its coding. Most bodies have none, and nobody waits for those. */
function withoutCoding(
  sent: Buffer,
  { headers }: IncomingMessage,
  limits: BodyLimits,
): ReceivedBody | Promise<ReceivedBody> {
  const coding = headers["content-encoding"]?.toLowerCase();
  if (coding === undefined || coding === "identity" || sent.length === 0)
    return { kind: "received", sent, decoded: sent };
  return canDecode(coding) ? decode(sent, coding, limits) : { kind: "received", sent, decoded: undefined };
}

async function decode(sent: Buffer, coding: string, { bytes, share }: BodyLimits): Promise<ReceivedBody> {
  const decoded = await decodeBody(sent, coding, bytes, share);
  if (decoded === "undecodable") return { kind: decoded, cause: `The body is not valid ${coding}.` };
  return typeof decoded === "string" ? { kind: decoded } : { kind: "received", sent, decoded };
}

class BodyCollector extends Watched {
  readonly #request: IncomingMessage;
  readonly #limits: BodyLimits;
  readonly #watchdog: Watchdog;
  readonly #body: BodyBuffer;
  #settle: (body: ReceivedBody | Promise<ReceivedBody>) => void = () => {};

  constructor(request: IncomingMessage, limits: BodyLimits, watchdog: Watchdog) {
    super();
    this.#request = request;
    this.#limits = limits;
    this.#watchdog = watchdog;
    this.#body = new BodyBuffer(limits.bytes, declaredBytes(request), limits.share);
    this.#expectMore();
  }

  collect(): Promise<ReceivedBody> {
    return new Promise((resolve) => {
      this.#settle = resolve;
      this.#watchdog.watch(this);
      this.#request.on("data", this.#keep);
      this.#request.on("end", this.#finish);
      this.#request.on("error", this.#cut);
      this.#request.on("close", this.#cut);
      this.#request.on(MALFORMED_BODY, this.#spoil);
    });
  }

  expired(): void {
    this.#over({ kind: "late" });
  }

  readonly #keep = (chunk: Buffer): void => {
    const kept = this.#body.append(chunk);
    if (kept === "kept") this.#expectMore();
    else this.#over({ kind: kept });
  };

  readonly #finish = (): void => this.#over(withoutCoding(this.#body.take(), this.#request, this.#limits));
  readonly #cut = (): void => this.#over({ kind: "cut" });
  readonly #spoil = (): void => this.#over({ kind: "malformed" });

  /** A body that trickles is late long before its time is over: who sends so slowly only holds a place. */
  #expectMore(): void {
    const { arrivedAtMs, withinMs } = this.#limits;
    const paceMs = GRACE_MS + this.#body.length / MIN_BYTES_PER_MS;
    this.deadlineMs = arrivedAtMs + Math.min(withinMs ?? Number.POSITIVE_INFINITY, paceMs);
  }

  /** The request outlives its body by hours: nobody listens to it any more. */
  #over(body: ReceivedBody | Promise<ReceivedBody>): void {
    this.#watchdog.unwatch(this);
    this.#request.off("data", this.#keep);
    this.#request.off("end", this.#finish);
    this.#request.off("error", this.#cut);
    this.#request.off("close", this.#cut);
    this.#request.off(MALFORMED_BODY, this.#spoil);
    this.#body.discard();
    this.#settle(body);
  }
}

/** Undefined: the body comes in chunks, or there is none. */
function declaredBytes({ headers }: IncomingMessage): number | undefined {
  const declared = headers["content-length"];
  return declared === undefined ? undefined : Number(declared);
}

/** 4 kbit/s: no line that people use is as slow, not even on the whole. */
const MIN_BYTES_PER_MS = 0.5;
/** Before the pace is looked at: a client may open a request before it knows what to send. */
const GRACE_MS = 30_000;
