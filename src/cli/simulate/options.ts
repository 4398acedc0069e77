import { availableParallelism } from "node:os";
import { type Command, InvalidArgumentError, Option } from "commander";
import {
  isSyntheticSpec,
  parseDurationMs,
  parseFleet,
  parseFleetEvents,
  parseSweep,
  resizeFleet,
  type Slo,
  type SweepSpec,
} from "../../sim/index.ts";
import { parsePolicies } from "./policies.ts";
import type { InputSettings, SimulateSettings } from "./settings.ts";

/** Options as they were given, each read on its own. */
export interface SimulateOptions {
  readonly trace: string;
  readonly start?: number;
  readonly duration?: number;
  readonly requests?: number;
  readonly rate: number;
  readonly sessions?: NonNullable<InputSettings["sessions"]>;
  readonly sessionGap?: number;
  readonly model?: string;
  readonly fleet: string;
  readonly events: string;
  readonly replicas: number;
  readonly dealing: "in_turn" | "by_session" | "at_random";
  readonly exchange?: number;
  readonly sendDelay?: number;
  readonly policies: readonly string[];
  readonly base?: string;
  readonly seed: readonly number[];
  readonly slo: Slo;
  readonly sweep?: SweepSpec;
  readonly json?: string;
  readonly html?: string;
  readonly markdown?: true;
  readonly jobs: number;
}

/** Conversations of four turns with a heavy tail, on hardware that is not all alike. */
const DEFAULT_TRACE =
  "synthetic:rate=16,requests=3000,in=lognormal(1500,1.3),out=lognormal(220,1.0),prefix=8x600,turns=4,think=exp(10s)";
const DEFAULT_FLEET = "2*llama8b-h100,2*llama8b-a100";
const DEFAULT_POLICIES = "least_delay,least_connections,round_robin";

/** Gives `command` its options, under headings of their own. */
export function addSimulateOptions(command: Command): void {
  const add = (heading: string, flags: string, text: string, shape: (option: Option) => unknown): void => {
    const option = new Option(flags, text).helpGroup(heading);
    shape(option);
    command.addOption(option);
  };
  const arrives = "What arrives:";
  add(
    arrives,
    "--trace <file>",
    "Trace, plain or gzip, whose format is recognised; or synthetic:KEY=VALUE,...",
    (option) => option.default(DEFAULT_TRACE, "made-up conversations"),
  );
  add(arrives, "--rate <factor>", "Times the trace's own rate.", (option) => option.argParser(positive).default(1));
  add(arrives, "--requests <number>", "Take the first so many arrivals.", (option) => option.argParser(whole));
  add(arrives, "--start <time>", "Begin there in the trace, such as 10m.", (option) => option.argParser(duration));
  add(arrives, "--duration <time>", "Take so much of the trace.", (option) => option.argParser(duration));
  add(
    arrives,
    "--sessions <range>",
    "Of a file of sessions: those to take, such as 100..199, counted from 0.",
    (option) => option.argParser(range),
  );
  add(arrives, "--session-gap <time>", "Of a file of sessions: mean time between their starts.", (option) =>
    option.argParser(duration),
  );
  add(arrives, "--model <name>", "Of a recording: take only what asked for this model.", (option) => option);
  const serves = "What serves:";
  add(serves, "--fleet <engines>", "Groups COUNT*PROFILE@SPEED with commas between them.", (option) =>
    option.argParser(checked(parseFleet)).default(DEFAULT_FLEET),
  );
  add(
    serves,
    "--events <list>",
    "Changes: fail h100-2 at 300s, recover h100-2 at 6m, join 2*llama8b-h100 at 10m.",
    (option) => option.default("", "none"),
  );
  add(serves, "--replicas <number>", "Balancers in front of the fleet, each with what it sees itself.", (option) =>
    option.argParser(whole).default(1),
  );
  add(serves, "--dealing <how>", "Which of them gets a request.", (option) =>
    option.choices(["in_turn", "by_session", "at_random"]).default("in_turn"),
  );
  add(serves, "--exchange <time>", "How often they tell each other of their work; without it, never.", (option) =>
    option.argParser(duration),
  );
  add(serves, "--send-delay <time>", "From a balancer's decision to the engine.", (option) =>
    option.argParser(delay).default(2, "2ms"),
  );
  const asked = "What is asked:";
  add(asked, "--policies <list>", "Policies to compare, or the groups own, peers and all; see below.", (option) =>
    option.argParser(policies).default(parsePolicies(DEFAULT_POLICIES), DEFAULT_POLICIES),
  );
  add(
    asked,
    "--base <policy>",
    "Compare the others to this one; off: to none. (default: least_delay, if it is there)",
    (option) => option,
  );
  add(asked, "--slo <limits>", "What makes a request good.", (option) =>
    option.argParser(slo).default({ ttftMs: 2000, tpotMs: 50 }, "ttft=2s,tpot=50ms"),
  );
  add(asked, "--seed <list>", "Seeds, such as 1,2,3: one run of each policy for each.", (option) =>
    option.argParser(seeds).default([1], "1"),
  );
  add(
    asked,
    "--sweep <range>",
    "Find the capacity: rate=1..4 or endpoints=4..16; with a step, rate=1..4/0.5.",
    (option) => option.argParser(checkedTo(parseSweep)),
  );
  const output = "Output:";
  add(output, "--json <file>", "Write the report as one JSON object; - is standard output.", (option) => option);
  add(output, "--html <file>", "Write the report as one HTML page with plots.", (option) => option);
  add(output, "--markdown", "Print the table as Markdown.", (option) => option);
  add(output, "--jobs <number>", "Simulations at the same time.", (option) =>
    option.argParser(whole).default(availableParallelism(), "cores"),
  );
}

/** @returns a sentence where options do not go together. */
export function settingsOf(options: SimulateOptions, command: string): SimulateSettings | string {
  const { policies: names, fleet, rate, seed, events, sweep } = options;
  const problem = conflictOf(options);
  if (problem !== undefined) return problem;
  const base = options.base ?? (names.length > 1 && names.includes("least_delay") ? "least_delay" : undefined);
  return {
    runs: {
      input: {
        trace: options.trace,
        startMs: options.start,
        durationMs: options.duration,
        requests: options.requests,
        sessions: options.sessions,
        sessionGapMs: options.sessionGap,
        model: options.model,
      },
      events,
      replicas: { count: options.replicas, dealing: options.dealing, exchangeMs: options.exchange },
      sendDelayMs: options.sendDelay,
    },
    policies: names,
    fleet,
    rate,
    seeds: seed,
    slo: options.slo,
    sweep,
    base: base === "off" ? undefined : base,
    jobs: options.jobs,
    command,
  };
}

function conflictOf(options: SimulateOptions): string | undefined {
  const { trace, fleet, events, sweep, base, policies: names, rate } = options;
  if (base !== undefined && base !== "off" && !names.includes(base)) {
    return `--base ${base} is not among the policies ${names.join(", ")}`;
  }
  const { sessions, sessionGap, model } = options;
  if (isSyntheticSpec(trace) && [sessions, sessionGap, model].some((value) => value !== undefined)) {
    return "--sessions, --session-gap and --model are about files; a synthetic trace says such things itself";
  }
  if (options.exchange !== undefined && options.replicas === 1) {
    return "--exchange is about several balancers; --replicas says how many there are";
  }
  if (sweep?.variable === "rate" && rate !== 1) return "--rate and --sweep rate=... exclude each other";
  try {
    const parsed = parseFleet(fleet);
    // What happens to the smallest fleet can happen to all.
    const smallest = sweep?.variable === "endpoints" ? resizeFleet(parsed, sweep.from) : parsed;
    parseFleetEvents(events, smallest);
    return undefined;
  } catch (error) {
    if (error instanceof RangeError) return error.message;
    throw error;
  }
}

/** The text itself, if `parse` takes it. */
function checked(parse: (text: string) => unknown): (text: string) => string {
  const read = checkedTo(parse);
  return (text) => {
    read(text);
    return text;
  };
}

/** What `parse` makes of the text; what it throws becomes a message of the command line. */
function checkedTo<Value>(parse: (text: string) => Value): (text: string) => Value {
  return (text) => {
    try {
      return parse(text);
    } catch (error) {
      if (error instanceof RangeError) throw new InvalidArgumentError(`${capitalised(error.message)}.`);
      throw error;
    }
  };
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const policies = checkedTo(parsePolicies);

function positive(text: string): number {
  const value = Number(text);
  if (text.trim() !== "" && Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError("Expected a number above 0.");
}

function whole(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new InvalidArgumentError("Expected a whole number of at least 1.");
}

function duration(text: string): number {
  const ms = parseDurationMs(text);
  if (ms !== undefined && ms > 0) return ms;
  throw new InvalidArgumentError("Expected a time above 0, such as 250ms, 30s, 10m or 2h.");
}

/** None is allowed. */
function delay(text: string): number {
  return text === "0" ? 0 : duration(text);
}

function range(text: string): NonNullable<InputSettings["sessions"]> {
  const [, from, to] = /^(\d+)\.\.(\d+)$/.exec(text) ?? [];
  if (from !== undefined && Number(from) <= Number(to)) return { from: Number(from), to: Number(to) };
  throw new InvalidArgumentError("Expected two whole numbers, such as 100..199.");
}

function seeds(text: string): number[] {
  const numbers = text.split(",").map((part) => (/^\s*\d+\s*$/.test(part) ? Number(part) : Number.NaN));
  if (numbers.every(Number.isSafeInteger)) return [...new Set(numbers)];
  throw new InvalidArgumentError("Expected whole numbers with commas between them, such as 1,2,3.");
}

function slo(text: string): Slo {
  const limits: Record<string, number | undefined> = {};
  for (const part of text.split(",")) {
    const [, name = "", time = ""] = /^\s*(ttft|tpot)=(\S+)\s*$/.exec(part) ?? [];
    limits[name] = parseDurationMs(time);
  }
  const { ttft: ttftMs, tpot: tpotMs } = limits;
  if (ttftMs !== undefined && tpotMs !== undefined && Object.keys(limits).length === 2) return { ttftMs, tpotMs };
  throw new InvalidArgumentError("Expected both limits, such as ttft=2s,tpot=50ms.");
}
