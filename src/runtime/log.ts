import { type DestinationStream, type Logger, pino } from "pino";
import { PinoPretty } from "pino-pretty";
import type { LogConfig } from "../config/index.ts";

/** Structured log: JSON lines, or readable ones on a terminal. Callers pass ids and numbers, never headers or bodies. */
export type Log = Logger;

/** A log to standard output as configured. */
export function createLog({ level, format }: LogConfig): Log {
  const isPretty = format === "pretty" || (format === "auto" && process.stdout.isTTY === true);
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  return isPretty ? pino(options, prettyStream()) : pino(options);
}

function prettyStream(): DestinationStream {
  return PinoPretty({ colorize: process.stdout.isTTY === true, translateTime: "SYS:HH:MM:ss.l", sync: true });
}
