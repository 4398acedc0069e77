import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { errorBody } from "./error-answer.ts";
import type { ErrorCode, ErrorDetails } from "./errors.ts";

/**
 * Answers what never became a request, on its bare connection, and closes that. The client's bytes are read on for a
 * moment: closing over unread ones resets the connection, and a reset may overtake the answer.
 */
export function refuseSocket(socket: Duplex, code: ErrorCode, details: ErrorDetails = {}): void {
  const { status, headers, body } = errorBody(undefined, code, details);
  const lines = Object.entries({ ...headers, connection: "close" }).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n`;
  // A client that is gone makes the write fail, which is nobody's concern any more.
  socket.on("error", () => {});
  socket.resume().end(Buffer.concat([Buffer.from(head), body]));
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once("close", () => clearTimeout(timer));
}

const LINGER_MS = 1_000;
