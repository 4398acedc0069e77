import { parseDurationMs } from "../duration.ts";
import { DISTRIBUTION_FORMS, type Distribution, readDistribution, readNumber } from "./distribution.ts";
import { exponentialGaps, type Gaps, gammaGaps } from "./gaps.ts";
import { shown, WorkloadError } from "./workload-error.ts";

/** What a synthetic workload is made of. */
export interface SyntheticSpec {
  /** Requests per second in the mean, all turns counted. */
  readonly rate: number;
  /** Requests in all, all turns counted. */
  readonly requests: number;
  /** How session starts scatter. */
  readonly arrivals: Gaps;
  /** New prompt tokens of a turn, without system prompt and history. */
  readonly in: Distribution;
  readonly out: Distribution;
  /** System prompts, each shared by the sessions of its group. */
  readonly prefix: { readonly groups: number; readonly tokens: number };
  /** Requests of a session. */
  readonly turns: number;
  /** Closed: from answer to next turn. Open: from turn to turn. In ms. */
  readonly think: Distribution;
  readonly loop: "closed" | "open";
  readonly seed: number;
}

/** What a specification begins with. */
const SCHEME = "synthetic:";

/** Whether a trace is named that is made, not read. */
export function isSyntheticSpec(text: string): boolean {
  return text.startsWith(SCHEME);
}

interface Key<Value> {
  /** What is allowed, for messages. */
  readonly form: string;
  /** As it would be written. */
  readonly default: string;
  /** Undefined: not allowed. */
  read(text: string): Value | undefined;
}

const KEYS: { readonly [Name in keyof SyntheticSpec]: Key<SyntheticSpec[Name]> } = {
  rate: { form: "requests per second, above 0", default: "1", read: positive },
  requests: { form: "a whole number of at least 1", default: "1000", read: wholeFrom(1) },
  arrivals: { form: "poisson or gamma(CV)", default: "poisson", read: readGaps },
  in: { form: `tokens: ${DISTRIBUTION_FORMS}`, default: "exp(1000)", read: readTokens },
  out: { form: `tokens: ${DISTRIBUTION_FORMS}`, default: "exp(200)", read: readTokens },
  prefix: { form: "GROUPSxTOKENS", default: "1x0", read: readPrefix },
  turns: { form: "a whole number of at least 1", default: "1", read: wholeFrom(1) },
  think: { form: `times with ms, s, m or h: ${DISTRIBUTION_FORMS}`, default: "0s", read: readThink },
  loop: { form: "closed or open", default: "closed", read: readLoop },
  seed: { form: "a whole number", default: "1", read: wholeFrom(0) },
};

/**
 * Reads a specification such as `synthetic:rate=10,in=lognormal(800,1.2)`. What it leaves out has its default.
 * @throws WorkloadError that names every problem with what is allowed.
 */
export function parseSyntheticSpec(text: string): SyntheticSpec {
  const problems: string[] = [];
  const written = new Map<string, string>();
  for (const part of splitOutsideBrackets(text.slice(SCHEME.length))) {
    const [, name = part, value] = /^([^=]*)=(.*)$/s.exec(part) ?? [];
    if (!Object.hasOwn(KEYS, name)) problems.push(`${shown(name)}: expected one of ${Object.keys(KEYS).join(", ")}`);
    else if (value === undefined) problems.push(`${name}: expected ${name}=VALUE`);
    else if (written.has(name)) problems.push(`${name}: given twice`);
    else written.set(name, value);
  }
  const read = <Value>(name: string, { form, default: otherwise, read: parse }: Key<Value>): Value => {
    const value = written.get(name) ?? otherwise;
    const result = parse(value);
    if (result === undefined) problems.push(`${name}: expected ${form}; got ${shown(value)}`);
    // A problem was added: nothing is returned then.
    return result as Value;
  };
  const spec: SyntheticSpec = {
    rate: read("rate", KEYS.rate),
    requests: read("requests", KEYS.requests),
    arrivals: read("arrivals", KEYS.arrivals),
    in: read("in", KEYS.in),
    out: read("out", KEYS.out),
    prefix: read("prefix", KEYS.prefix),
    turns: read("turns", KEYS.turns),
    think: read("think", KEYS.think),
    loop: read("loop", KEYS.loop),
    seed: read("seed", KEYS.seed),
  };
  if (problems.length > 0) throw new WorkloadError(problems.join("\n"));
  return spec;
}

/** At commas that are not between brackets. */
function splitOutsideBrackets(text: string): string[] {
  return text === "" ? [] : text.split(/,(?![^(]*\))/).map((part) => part.trim());
}

function positive(text: string): number | undefined {
  const value = readNumber(text);
  return value !== undefined && value > 0 ? value : undefined;
}

function wholeFrom(least: number): (text: string) => number | undefined {
  return (text) => {
    const value = readNumber(text);
    return Number.isSafeInteger(value) && (value as number) >= least ? value : undefined;
  };
}

function readGaps(text: string): Gaps | undefined {
  if (text === "poisson") return exponentialGaps;
  const cv = positive(/^gamma\((.*)\)$/.exec(text)?.[1]?.trim() ?? "");
  return cv === undefined ? undefined : gammaGaps(1 / cv ** 2);
}

function readTokens(text: string): Distribution | undefined {
  return readDistribution(text, readNumber);
}

function readThink(text: string): Distribution | undefined {
  return readDistribution(text, parseDurationMs);
}

function readPrefix(text: string): SyntheticSpec["prefix"] | undefined {
  const [, groups, tokens] = /^([1-9]\d*)x(\d+)$/.exec(text) ?? [];
  return groups === undefined ? undefined : { groups: Number(groups), tokens: Number(tokens) };
}

function readLoop(text: string): SyntheticSpec["loop"] | undefined {
  return text === "closed" || text === "open" ? text : undefined;
}
