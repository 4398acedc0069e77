import { RecordingError } from "../runtime/index.ts";
import { WorkerError } from "../workers/index.ts";

/** Why a start failed, in words; an error that is about no address, no recording and no worker is thrown on. */
export function startFailure(error: unknown): string {
  if (error instanceof RecordingError || error instanceof WorkerError) return error.message;
  if (!isListenError(error)) throw error;
  return `cannot listen on ${placeOf(error)}: ${REASONS[error.code] ?? error.message}`;
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "the address is in use; choose another, or stop what has it",
  EACCES: "not allowed; ports below 1024 need privileges",
  EADDRNOTAVAIL: "no network interface of this machine has the address",
  ENOTFOUND: "there is no such host",
};

/** What Node says of an address that could not be resolved or listened on. */
interface ListenError extends Error {
  readonly code: string;
  readonly address?: string;
  readonly port?: number;
  readonly hostname?: string;
}

function isListenError(error: unknown): error is ListenError {
  if (!(error instanceof Error) || !("code" in error) || !("syscall" in error)) return false;
  return error.syscall === "listen" || error.syscall === "getaddrinfo";
}

function placeOf({ address = "", port, hostname }: ListenError): string {
  const host = address.includes(":") ? `[${address}]` : address;
  return hostname ?? `${host}:${port}`;
}
