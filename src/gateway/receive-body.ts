import type { IncomingMessage } from "node:http";
import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate } from "node:zlib";

/** A body, whole, or why there is none. */
export type ReceivedBody =
  | { readonly kind: "received"; readonly sent: Buffer; readonly decoded: Buffer }
  | { readonly kind: "too_large" }
  /** The client left before it was whole. */
  | { readonly kind: "cut" }
  | { readonly kind: "undecodable"; readonly cause: string };

/** Reads a request's body up to `limitBytes`, as sent and again once decoded. */
export async function receiveBody(request: IncomingMessage, limitBytes: number): Promise<ReceivedBody> {
  const declaredBytes = Number(request.headers["content-length"] ?? 0);
  if (declaredBytes > limitBytes) return { kind: "too_large" };
  const sent = await collect(request, limitBytes);
  if (typeof sent === "string") return { kind: sent };
  const coding = request.headers["content-encoding"];
  if (coding === undefined || coding === "identity" || sent.length === 0) return { kind: "received", sent, decoded: sent };
  return decode(sent, coding, limitBytes);
}

function collect(request: IncomingMessage, limitBytes: number): Promise<Buffer | "too_large" | "cut"> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= limitBytes) {
        chunks.push(chunk);
        return;
      }
      request.removeAllListeners("data");
      request.pause();
      resolve("too_large");
    });
    request.once("end", () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, bytes)));
    request.once("error", () => resolve("cut"));
    request.once("close", () => resolve("cut"));
  });
}

const decoders: ReadonlyMap<string, (body: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>> = new Map([
  ["gzip", promisify(gunzip)],
  ["x-gzip", promisify(gunzip)],
  ["deflate", promisify(inflate)],
  ["br", promisify(brotliDecompress)],
]);

async function decode(sent: Buffer, coding: string, limitBytes: number): Promise<ReceivedBody> {
  const decoder = decoders.get(coding.toLowerCase());
  if (decoder === undefined) {
    return { kind: "undecodable", cause: `The content-encoding "${coding}" is not understood; send gzip, deflate, br or none.` };
  }
  try {
    return { kind: "received", sent, decoded: await decoder(sent, { maxOutputLength: limitBytes }) };
  } catch (error) {
    if (error instanceof RangeError) return { kind: "too_large" };
    return { kind: "undecodable", cause: `The body is not valid ${coding}.` };
  }
}
