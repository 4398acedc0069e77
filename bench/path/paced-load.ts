import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ClientSettings } from "./peer.ts";
import { runWrk, WRK_ERRORS, WRK_ERRORS_FORMAT, WRK_REQUEST, WRK_SUMMARY, type WrkErrors, wrkProblems } from "./wrk.ts";

/** How long answers took at a given rate, in milliseconds from sending to the last byte. */
export interface Latencies {
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Connections that send by their own clock: enough that few are still waiting when their next request is due. */
const CONNECTIONS = 64;

/**
 * An open loop of requests at random moments (Poisson): wrk with a thread for each connection, which sleeps until its
 * next request is due. So sending is precise to the kernel's timer slack of 50 us, and times are taken in C.
 */
export class PacedLoad {
  readonly #scriptFile: string;
  readonly #requestsPerSecond: number;

  private constructor(scriptFile: string, requestsPerSecond: number) {
    this.#scriptFile = scriptFile;
    this.#requestsPerSecond = requestsPerSecond;
  }

  static async create(directory: string, requestsPerSecond: number): Promise<PacedLoad> {
    const scriptFile = join(directory, "wrk-paced.lua");
    await writeFile(scriptFile, script(CONNECTIONS / requestsPerSecond));
    return new PacedLoad(scriptFile, requestsPerSecond);
  }

  /** @throws when an answer did not come whole, or the rate could not be kept up. */
  async run(port: number, seconds: number, headers: ClientSettings["headers"] = {}): Promise<Latencies> {
    const run = {
      scriptFile: this.#scriptFile,
      threads: CONNECTIONS,
      connections: CONNECTIONS,
      seconds,
      port,
      headers,
    };
    const { requests, durationUs, p50Us, p99Us, errors } = await runWrk<PacedSummary>(run);
    const problems = wrkProblems(errors);
    if (problems.length > 0) throw new Error(problems.join(", "));
    const requestsPerSecond = requests / (durationUs / 1e6);
    if (requestsPerSecond < KEPT_UP * this.#requestsPerSecond) {
      throw new Error(`only ${requestsPerSecond.toFixed(0)} of ${this.#requestsPerSecond.toFixed(0)} requests/s came`);
    }
    return { requestsPerSecond, p50Ms: p50Us / 1000, p99Ms: p99Us / 1000 };
  }
}

/** Share of the rate below which a peer is overloaded, and its latency says nothing. */
const KEPT_UP = 0.85;

interface PacedSummary {
  readonly requests: number;
  readonly durationUs: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly errors: WrkErrors;
}

/**
 * @param meanGapSeconds Between two requests of one connection. One that is due while its connection still waits for an
 * answer goes right after it.
 */
function script(meanGapSeconds: number): string {
  return `${WRK_REQUEST}
local ffi = require("ffi")
ffi.cdef[[
struct bench_time { long seconds; long nanoseconds; };
int clock_gettime(int clock, struct bench_time *now);
int clock_nanosleep(int clock, int flags, const struct bench_time *moment, struct bench_time *rest);
]]
local MONOTONIC, ABSOLUTE = 1, 1
local moment = ffi.new("struct bench_time")
local due, message
local threads = 0

function setup(thread)
  threads = threads + 1
  thread:set("seed", threads)
end

function init()
  math.randomseed(seed)
  message = wrk.format()
end

function request()
  if due == nil then
    ffi.C.clock_gettime(MONOTONIC, moment)
    due = tonumber(moment.seconds) + tonumber(moment.nanoseconds) / 1e9
  end
  due = due - math.log(1 - math.random()) * ${meanGapSeconds}
  moment.seconds = math.floor(due)
  moment.nanoseconds = math.floor((due - math.floor(due)) * 1e9)
  ffi.C.clock_nanosleep(MONOTONIC, ABSOLUTE, moment, nil)
  return message
end

done = function(summary, latency)
  local e = summary.errors
  io.write(string.format('${WRK_SUMMARY}{"requests":%d,"durationUs":%d,"p50Us":%d,"p99Us":%d,${WRK_ERRORS_FORMAT}}',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), ${WRK_ERRORS}))
end
`;
}
