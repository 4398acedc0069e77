import type { StartFailure } from "./messages.ts";

/** What a worker says of an address that it cannot listen on; undefined: the error is about something else. */
export function startFailureOf(error: unknown): StartFailure | undefined {
  if (!(error instanceof Error) || !("syscall" in error)) return undefined;
  const { message, syscall, code, address, port, hostname } = error as Error & StartFailure & { syscall: string };
  return LISTEN_CALLS.includes(syscall) ? { message, code, address, port, hostname } : undefined;
}

/** The error of a process that listens by itself, whose calls the primary makes for its workers. */
export function listenErrorOf({ message, ...fields }: StartFailure): Error {
  return Object.assign(new Error(message), { ...fields, syscall: "listen" });
}

/** `bind` is what the primary calls for a worker that listens. */
const LISTEN_CALLS: readonly string[] = ["listen", "bind", "getaddrinfo"];
