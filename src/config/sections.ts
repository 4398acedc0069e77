import { z } from "zod";
import {
  DEFAULT_EJECTION_OPTIONS,
  DEFAULT_HOLDING_LIMITS,
  type EjectionOptions,
  type HoldingLimits,
} from "../core/index.ts";
import { byteSize } from "./byte-size.ts";
import {
  type FailoverConfig,
  type HealthConfig,
  type HedgingConfig,
  type Limits,
  LOG_FORMATS,
  LOG_LEVELS,
  type LogConfig,
  type RecordingConfig,
  type StreamsConfig,
  type Timeouts,
} from "./config.ts";
import { duration, durationOrOff } from "./duration.ts";

/** More would only carry an outage to every endpoint. */
const MAX_ATTEMPTS = 16;

const consecutive: z.ZodInt = z.int().min(1).max(1000);
const share: z.ZodNumber = z.number().min(0).max(1);

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
    total: durationOrOff
      .prefault("off")
      .describe("From a request's arrival to the end of its answer, however well it goes; long streams are cut too."),
    clientHead: durationOrOff.prefault("60s").describe("What a client may take to send a request's head."),
    clientBody: durationOrOff.prefault("5m").describe("What a client may take to send a request's body."),
  })
  .prefault({})
  .transform((written) => ({
    connectMs: written.connect,
    firstByteMs: written.firstByte,
    idleMs: written.idle,
    keepAliveMs: written.keepAlive,
    upstreamKeepAliveMs: written.upstreamKeepAlive,
    drainMs: written.drain,
    totalMs: written.total,
    clientHeadMs: written.clientHead,
    clientBodyMs: written.clientBody,
  }))
  .describe("How long things may take; `off`: without limit.");

export const limits: z.ZodType<Limits> = z
  .strictObject({
    bodyBytes: byteSize.prefault("64MiB").describe("Largest request body, as sent."),
    headerBytes: byteSize.prefault("32KiB").describe("Largest request head: request line and headers together."),
    bufferedBytes: byteSize
      .prefault("1GiB")
      .describe("What the bodies of all requests may take in memory together; beyond that requests are refused."),
    connections: z.int().min(1).default(10_000).describe("Clients' connections open at a time."),
  })
  .prefault({})
  .describe("How large requests may be, and how many clients there may be.");

const heldRequests = z
  .int()
  .min(0)
  .describe("How many may be held at a time; further ones are refused. 0: none is held, all are sent at once.");

const heldBytes = byteSize.describe("What their bodies may take in memory together; what does not fit is refused.");

const longestHold = duration.describe("After this a request is refused; a client that says it waits less has less.");

const promotion = duration.describe("Each such wait lifts a held request by one priority.");

export const holding: z.ZodType<HoldingLimits> = z
  .strictObject({
    maxRequests: heldRequests.default(DEFAULT_HOLDING_LIMITS.maxRequests),
    maxBytes: heldBytes.prefault(`${DEFAULT_HOLDING_LIMITS.maxBytes / 2 ** 20}MiB`),
    maxWait: longestHold.prefault(`${DEFAULT_HOLDING_LIMITS.maxWaitMs / 1000}s`),
    promoteAfter: promotion.prefault(`${DEFAULT_HOLDING_LIMITS.promoteAfterMs / 1000}s`),
  })
  .prefault({})
  .transform(({ maxWait, promoteAfter, ...sizes }) => ({
    ...sizes,
    maxWaitMs: maxWait,
    promoteAfterMs: promoteAfter,
  }))
  .describe("Requests held back while the best endpoint for them has no room, in every pool that says nothing else.");

/** What a pool says differently from `holding`. */
export const poolHolding: z.ZodType<Partial<HoldingLimits>> = z
  .strictObject({
    maxRequests: heldRequests.optional(),
    maxBytes: heldBytes.optional(),
    maxWait: longestHold.optional(),
    promoteAfter: promotion.optional(),
  })
  .transform(({ maxRequests, maxBytes, maxWait, promoteAfter }) => ({
    ...(maxRequests === undefined ? {} : { maxRequests }),
    ...(maxBytes === undefined ? {} : { maxBytes }),
    ...(maxWait === undefined ? {} : { maxWaitMs: maxWait }),
    ...(promoteAfter === undefined ? {} : { promoteAfterMs: promoteAfter }),
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

export const failover: z.ZodType<FailoverConfig> = z
  .strictObject({
    attempts: z
      .int()
      .min(1)
      .max(MAX_ATTEMPTS)
      .default(3)
      .describe("How many endpoints a request may be tried on, the first included."),
    resends: z
      .int()
      .min(0)
      .max(MAX_ATTEMPTS)
      .default(1)
      .describe("How many of those after one that had the request and lost it."),
    slowResends: z
      .int()
      .min(0)
      .max(MAX_ATTEMPTS)
      .default(0)
      .describe(
        "How many of those after one that had the request for `timeouts.firstByte`: its prompt may be half computed.",
      ),
    budget: share.default(0.2).describe("Retries as a share of a pool's requests."),
    minPerSecond: z.number().min(0).max(1000).default(1).describe("Retries allowed however few requests there are."),
    guard: durationOrOff
      .prefault("1s")
      .describe(
        "How long a stream's head waits for its first event, so that a failure before it can be tried elsewhere.",
      ),
  })
  .prefault({})
  .transform(({ attempts, resends, slowResends, budget, minPerSecond, guard }) => ({
    attempts,
    resends,
    slowResends,
    budgetRatio: budget,
    minRetriesPerSecond: minPerSecond,
    guardMs: guard,
  }))
  .describe("When a request that has no answer yet is tried on another endpoint.");

export const streams: z.ZodType<StreamsConfig> = z
  .strictObject({
    heartbeat: durationOrOff
      .prefault("off")
      .describe("Silence in a stream after which a comment is sent, for front ends that cut silent connections."),
    openEarly: z
      .boolean()
      .default(false)
      .describe(
        "Open a stream with a comment after that silence although no endpoint has answered; then a failure has status 200.",
      ),
  })
  .prefault({})
  .transform(({ heartbeat, openEarly }) => ({ heartbeatMs: heartbeat, opensEarly: openEarly }))
  .describe("What is put into silent streams.");

export const hedging: z.ZodType<HedgingConfig | undefined> = z
  .strictObject({
    after: durationOrOff
      .prefault("off")
      .describe("A request without a first byte by then goes to a second endpoint too; the first to answer wins."),
    budget: share.default(0.05).describe("Such requests as a share of a pool's requests."),
  })
  .prefault({})
  .transform(({ after, budget }) => (after === undefined ? undefined : { afterMs: after, budgetRatio: budget }))
  .describe("Requests that are at two endpoints at a time.");

const ejection = z
  .strictObject({
    failures: consecutive
      .default(DEFAULT_EJECTION_OPTIONS.failures)
      .describe("Failed requests in a row that eject an endpoint."),
    ratio: z
      .number()
      .gt(0)
      .max(1)
      .default(DEFAULT_EJECTION_OPTIONS.failureRatio)
      .describe("Failed requests as a share of a window's that eject it."),
    minRequests: consecutive
      .default(DEFAULT_EJECTION_OPTIONS.minRequests)
      .describe("Requests in a window before the share means anything."),
    window: duration.prefault(`${DEFAULT_EJECTION_OPTIONS.windowMs / 1000}s`).describe("How far back the share looks."),
    base: duration
      .prefault(`${DEFAULT_EJECTION_OPTIONS.baseMs / 1000}s`)
      .describe("How long the first ejection lasts; each further one lasts twice as long."),
    max: duration
      .prefault(`${DEFAULT_EJECTION_OPTIONS.maxMs / 60_000}m`)
      .describe("How long an ejection lasts at most."),
    maxRatio: share
      .default(DEFAULT_EJECTION_OPTIONS.maxRatio)
      .describe("Endpoints of a pool ejected at a time, as a share."),
  })
  .prefault({})
  .transform(
    ({ ratio, window, base, max, ...counts }): EjectionOptions => ({
      ...counts,
      failureRatio: ratio,
      windowMs: window,
      baseMs: base,
      maxMs: max,
    }),
  )
  .describe("When traffic that fails ejects an endpoint, though its probes may be good.");

export const health: z.ZodType<HealthConfig> = z
  .strictObject({
    interval: duration.prefault("5s").describe("Time between two probes of an endpoint."),
    timeout: duration.prefault("2s").describe("What a probe may take."),
    unhealthyAfter: consecutive
      .default(3)
      .describe("Failed probes and connections in a row that make an endpoint unhealthy."),
    healthyAfter: consecutive.default(2).describe("Successful probes in a row that make it healthy again."),
    path: z
      .string()
      .regex(/^\/\S*$/, { error: "a path such as /health" })
      .optional()
      .describe("Path to probe; absent: the one that is right for the engine.")
      .meta({ value: "path" }),
    slowStart: durationOrOff
      .prefault("30s")
      .describe("How long a new or recovered endpoint takes to its full share of requests."),
    ejection,
  })
  .prefault({})
  .transform(({ interval, timeout, path, slowStart, ...thresholds }) => ({
    ...thresholds,
    intervalMs: interval,
    timeoutMs: timeout,
    path,
    slowStartMs: slowStart,
  }))
  .describe("How endpoints are probed.");

export const log: z.ZodType<LogConfig> = z
  .strictObject({
    level: z.enum(LOG_LEVELS).default("info").describe("Least severe level that is written."),
    format: z.enum(LOG_FORMATS).default("auto").describe("`auto`: pretty on a terminal, JSON elsewhere."),
  })
  .prefault({})
  .describe("What is logged, on standard output.");
