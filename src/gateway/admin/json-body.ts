import type { IncomingMessage } from "node:http";
import { type AdminAnswer, refusal } from "./admin-answer.ts";

/** The JSON that a request brought, or the answer to one that brought something else. */
export type ReceivedJson =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly answer: AdminAnswer };

export async function readJson(request: IncomingMessage, maxBytes: number): Promise<ReceivedJson> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) return { ok: false, answer: refusal(413, `expected at most ${maxBytes} bytes`) };
    chunks.push(chunk);
  }
  try {
    return { ok: true, value: JSON.parse(Buffer.concat(chunks).toString()) };
  } catch {
    return { ok: false, answer: refusal(400, "expected JSON in the body of the request") };
  }
}
