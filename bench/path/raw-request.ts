import type { ClientSettings } from "./peer.ts";
import { PATH } from "./workload.ts";

/** A chat request as clients on raw sockets write it. */
export function requestText(body: string, headers: ClientSettings["headers"] = {}): string {
  return [
    `POST ${PATH} HTTP/1.1`,
    "host: bench.test",
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    "",
    body,
  ].join("\r\n");
}
