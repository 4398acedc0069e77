import { WorkloadError } from "../../sim/index.ts";

/** Why a simulation could not be, in words; what nobody expected is thrown on. @param trace As it was named. */
export function failureOf(error: unknown, trace: string): string {
  if (error instanceof WorkloadError) return `${trace}: ${error.message}`;
  if (!isSystemError(error)) throw error;
  if (error.code.startsWith("Z_")) return `${trace}: no gzip file, or a broken one`;
  // A folder opens like a file; only reading it fails, and then nobody says which it was.
  if (error.syscall === undefined) throw error;
  return `cannot ${error.syscall} ${error.path ?? trace}: ${REASONS[error.code] ?? error.message}`;
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file or folder",
  EACCES: "not allowed",
  EISDIR: "it is a folder",
};

/** What the file system and zlib throw. */
interface SystemError extends Error {
  readonly code: string;
  readonly syscall?: string;
  readonly path?: string;
}

function isSystemError(error: unknown): error is SystemError {
  return error instanceof Error && "code" in error && typeof error.code === "string";
}
