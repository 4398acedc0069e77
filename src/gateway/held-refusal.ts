import type { IncomingHttpHeaders } from "node:http";

/**
 * A 400 to a request that the balancer had added an option to. It is kept from the client until it is
 * whole: if it is about that option, the client never asked for what was refused.
 */
export class HeldRefusal {
  readonly headers: IncomingHttpHeaders;
  readonly chunks: Buffer[] = [];
  #bytes = 0;

  constructor(headers: IncomingHttpHeaders) {
    this.headers = headers;
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
