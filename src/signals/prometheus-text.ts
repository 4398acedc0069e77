/** One line of the Prometheus text format; its value is finite. */
export interface MetricSample {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

/** Far above what an engine exports (vLLM: some hundred lines per rank), far below what hurts. */
const MAX_SAMPLES = 20_000;
/** vLLM's `cache_config_info` is the longest line known, about 2 kB. */
const MAX_LINE_UNITS = 32_768;

/**
 * Reads the samples whose name `keep` accepts, in one pass without backtracking. Comments, time stamps and exemplars
 * are skipped; so is every line that does not parse, and every NaN or infinite value: an unknown is not a number.
 */
export function parsePrometheusText(text: string, keep: (name: string) => boolean): MetricSample[] {
  const samples: MetricSample[] = [];
  let start = 0;
  while (start < text.length && samples.length < MAX_SAMPLES) {
    const newline = text.indexOf("\n", start);
    const end = newline === -1 ? text.length : newline;
    if (end - start <= MAX_LINE_UNITS) {
      const sample = parseLine(text.slice(start, end), keep);
      if (sample !== undefined) samples.push(sample);
    }
    start = end + 1;
  }
  return samples;
}

const NAME = /[a-zA-Z_:][a-zA-Z0-9_:]*/y;

function parseLine(line: string, keep: (name: string) => boolean): MetricSample | undefined {
  const nameStart = skipBlanks(line, 0);
  const name = matchAt(NAME, line, nameStart);
  if (name === undefined || !keep(name)) return undefined;
  let at = skipBlanks(line, nameStart + name.length);
  let labels: ReadonlyMap<string, string> = NO_LABELS;
  if (line[at] === "{") {
    const parsed = parseLabels(line, at + 1);
    if (parsed === undefined) return undefined;
    labels = parsed.labels;
    at = skipBlanks(line, parsed.end);
  } else if (at === nameStart + name.length) {
    return undefined;
  }
  const value = parseValue(line, at);
  return value === undefined ? undefined : { name, labels, value };
}

const NO_LABELS: ReadonlyMap<string, string> = new Map();
const LABEL_NAME = /[a-zA-Z_][a-zA-Z0-9_]*/y;

/** @returns The labels and the position behind the closing brace; undefined: malformed. */
function parseLabels(
  line: string,
  start: number,
): { readonly labels: Map<string, string>; readonly end: number } | undefined {
  const labels = new Map<string, string>();
  let at = skipBlanks(line, start);
  while (line[at] !== "}") {
    const name = matchAt(LABEL_NAME, line, at);
    if (name === undefined) return undefined;
    at = skipBlanks(line, at + name.length);
    if (line[at] !== "=") return undefined;
    at = skipBlanks(line, at + 1);
    const quoted = parseQuoted(line, at);
    if (quoted === undefined) return undefined;
    labels.set(name, quoted.value);
    at = skipBlanks(line, quoted.end);
    if (line[at] === ",") at = skipBlanks(line, at + 1);
    else if (line[at] !== "}") return undefined;
  }
  return { labels, end: at + 1 };
}

const PLAIN_TEXT = /[^"\\]*/y;

/** A label value with its escapes: backslash, quote and newline. */
function parseQuoted(line: string, start: number): { readonly value: string; readonly end: number } | undefined {
  if (line[start] !== '"') return undefined;
  let value = "";
  let at = start + 1;
  while (at < line.length) {
    const plain = matchAt(PLAIN_TEXT, line, at) ?? "";
    value += plain;
    at += plain.length;
    if (line[at] === '"') return { value, end: at + 1 };
    const escaped = line[at + 1];
    value += escaped === "n" ? "\n" : (escaped ?? "");
    at += 2;
  }
  return undefined;
}

const TOKEN = /[^ \t\r]+/y;
/** Each character has one way to match, so a long run of digits costs no more than its length. */
const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;

function parseValue(line: string, at: number): number | undefined {
  const token = matchAt(TOKEN, line, at);
  if (token === undefined || !NUMBER.test(token)) return undefined;
  const value = Number(token);
  return Number.isFinite(value) ? value : undefined;
}

function skipBlanks(line: string, start: number): number {
  let at = start;
  while (line[at] === " " || line[at] === "\t") at++;
  return at;
}

/** What a sticky pattern matches at `at`; undefined: nothing. */
function matchAt(pattern: RegExp, line: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(line)?.[0];
}
