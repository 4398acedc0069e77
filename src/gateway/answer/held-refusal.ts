import type { IncomingHttpHeaders } from "node:http";

/**
 * A refusal of a request that the balancer had added an option to. It is kept from the client until it is
 * whole: if it is about that option, the client never asked for what was refused.
 */
export class HeldRefusal {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly chunks: Buffer[] = [];
  #bytes = 0;

  constructor(status: number, headers: IncomingHttpHeaders) {
    this.status = status;
    this.headers = headers;
  }

  /** Whether this is how engines refuse a field: 400 by most, 422 by web frameworks. */
  static mayBe(status: number): boolean {
    return status === 400 || status === 422;
  }

  /** False: too large to be kept, nobody refuses an option at such length. The chunk was not taken. */
  keep(chunk: Buffer): boolean {
    if (this.#bytes + chunk.length > MAX_BYTES) return false;
    this.#bytes += chunk.length;
    this.chunks.push(chunk);
    return true;
  }

  get namesUsageOption(): boolean {
    const text = Buffer.concat(this.chunks).toString("latin1");
    return text.includes("stream_options") || text.includes("include_usage");
  }
}

const MAX_BYTES = 64 * 1024;
