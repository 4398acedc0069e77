import { z } from "zod";
import { DEFAULT_HOLDING_LIMITS, type HoldingLimits } from "../core/index.ts";
import { byteSize } from "./byte-size.ts";
import {
  type HealthConfig,
  type Limits,
  LOG_FORMATS,
  LOG_LEVELS,
  type LogConfig,
  type RecordingConfig,
  type Timeouts,
} from "./config.ts";
import { duration, durationOrOff } from "./duration.ts";

/** Most front ends keep idle connections for 60 s: closing ours earlier would answer their next request with a reset. */
const KEEP_ALIVE = "75s";

/** Below the 4 s after which a vLLM server was first seen to close an idle connection; uvicorn's own limit is 5 s. */
const UPSTREAM_KEEP_ALIVE = "3s";

export const timeouts: z.ZodType<Timeouts> = z
  .strictObject({
    connect: durationOrOff.prefault("2s").describe("Opening a connection to an endpoint."),
    firstByte: durationOrOff
      .prefault("10m")
      .describe(
        "From the request sent to the first token of a stream, however early its head comes; of an answer that is not streamed, to its first byte, which comes at the end.",
      ),
    idle: durationOrOff
      .prefault("60s")
      .describe("Silence inside an answer, in a stream from its first token on; each chunk with data starts it anew."),
    keepAlive: durationOrOff
      .prefault(KEEP_ALIVE)
      .describe("How long a client's idle connection stays open; keep it above that of a proxy in front."),
    upstreamKeepAlive: duration
      .prefault(UPSTREAM_KEEP_ALIVE)
      .describe("How long an idle connection to an endpoint is reused; keep it below the engine's own."),
    drain: durationOrOff.prefault("30s").describe("What running requests get to finish after SIGTERM."),
  })
  .prefault({})
  .transform((written) => ({
    connectMs: written.connect,
    firstByteMs: written.firstByte,
    idleMs: written.idle,
    keepAliveMs: written.keepAlive,
    upstreamKeepAliveMs: written.upstreamKeepAlive,
    drainMs: written.drain,
  }))
  .describe("How long things may take; `off`: without limit.");

export const limits: z.ZodType<Limits> = z
  .strictObject({
    bodyBytes: byteSize.prefault("64MiB").describe("Largest request body, as sent."),
    headerBytes: byteSize.prefault("32KiB").describe("Largest request head: request line and headers together."),
  })
  .prefault({})
  .describe("How large a request may be.");

const heldRequests = z
  .int()
  .min(0)
  .describe("How many may be held at a time; further ones are sent at once, so that 0 holds none.");

const heldBytes = byteSize.describe(
  "What their bodies may take in memory together; what does not fit is sent at once.",
);

const longestHold = duration.describe("After this a request is sent though its endpoint has no room.");

export const holding: z.ZodType<HoldingLimits> = z
  .strictObject({
    maxRequests: heldRequests.default(DEFAULT_HOLDING_LIMITS.maxRequests),
    maxBytes: heldBytes.prefault(`${DEFAULT_HOLDING_LIMITS.maxBytes / 2 ** 20}MiB`),
    maxWait: longestHold.prefault(`${DEFAULT_HOLDING_LIMITS.maxWaitMs / 1000}s`),
  })
  .prefault({})
  .transform(({ maxWait, ...sizes }) => ({ ...sizes, maxWaitMs: maxWait }))
  .describe("Requests held back while the best endpoint for them has no room, in every pool that says nothing else.");

/** What a pool says differently from `holding`. */
export const poolHolding: z.ZodType<Partial<HoldingLimits>> = z
  .strictObject({
    maxRequests: heldRequests.optional(),
    maxBytes: heldBytes.optional(),
    maxWait: longestHold.optional(),
  })
  .transform(({ maxRequests, maxBytes, maxWait }) => ({
    ...(maxRequests === undefined ? {} : { maxRequests }),
    ...(maxBytes === undefined ? {} : { maxBytes }),
    ...(maxWait === undefined ? {} : { maxWaitMs: maxWait }),
  }));

export const recording: z.ZodType<RecordingConfig | undefined> = z
  .strictObject({
    file: z
      .string()
      .min(1)
      .optional()
      .describe("File to append to; absent: nothing is recorded.")
      .meta({ value: "path", flag: "--record" }),
    maxBytes: byteSize.prefault("1GiB").describe("Size of the file at which recording ends."),
  })
  .prefault({})
  .transform(({ file, maxBytes }) => (file === undefined ? undefined : { file, maxBytes }))
  .describe("Sizes and times of requests, without their text, for `evenkeel simulate`.");

const consecutive = z.int().min(1).max(1000);

export const health: z.ZodType<HealthConfig> = z
  .strictObject({
    interval: duration.prefault("5s").describe("Time between two probes of an endpoint."),
    timeout: duration.prefault("2s").describe("What a probe may take."),
    unhealthyAfter: consecutive
      .default(3)
      .describe("Failed probes and connections in a row, or failed answers in a row, that make an endpoint unhealthy."),
    healthyAfter: consecutive.default(2).describe("Successful probes in a row that make it healthy again."),
    path: z
      .string()
      .regex(/^\/\S*$/, { error: "a path such as /health" })
      .optional()
      .describe("Path to probe; absent: the one that is right for the engine.")
      .meta({ value: "path" }),
  })
  .prefault({})
  .transform(({ interval, timeout, path, ...thresholds }) => ({
    ...thresholds,
    intervalMs: interval,
    timeoutMs: timeout,
    path,
  }))
  .describe("How endpoints are probed.");

export const log: z.ZodType<LogConfig> = z
  .strictObject({
    level: z.enum(LOG_LEVELS).default("info").describe("Least severe level that is written."),
    format: z.enum(LOG_FORMATS).default("auto").describe("`auto`: pretty on a terminal, JSON elsewhere."),
  })
  .prefault({})
  .describe("What is logged, on standard output.");
