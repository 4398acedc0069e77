import { shown, WorkloadError } from "./workload-error.ts";

/** A trace: its whole text, or its lines one after another. */
export type TraceSource = string | Iterable<string>;

/** A line that is not blank, and where it stands. */
export interface TraceLine {
  /** Counted from 1. */
  readonly number: number;
  /** Without its line break. */
  readonly text: string;
}

/** The lines of a trace that are not blank. */
export function* traceLines(source: TraceSource): Generator<TraceLine> {
  let number = 0;
  for (const line of typeof source === "string" ? linesOf(source) : source) {
    number++;
    const text = line.trim();
    if (text !== "") yield { number, text };
  }
}

/** One at a time: a trace may be larger than what its lines and itself fit into at once. */
function* linesOf(text: string): Generator<string> {
  for (let start = 0; start <= text.length; ) {
    const lineBreak = text.indexOf("\n", start);
    const end = lineBreak === -1 ? text.length : lineBreak;
    yield text.slice(start, end);
    start = end + 1;
  }
}

/** The value that a line of JSON holds. @throws WorkloadError when it holds none. */
export function jsonOf({ number, text }: TraceLine): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new WorkloadError(`line ${number}: expected a JSON object, got ${shown(text)}`);
  }
}

/** A JSON object of a trace, read field by field; a field that is not as expected is an error that names its place. */
export class TraceRow {
  readonly #place: string;
  readonly #fields: Readonly<Record<string, unknown>>;

  private constructor(place: string, value: unknown) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new WorkloadError(`${place}: expected a JSON object, got ${shown(value)}`);
    }
    this.#place = place;
    this.#fields = value as Record<string, unknown>;
  }

  /** @throws WorkloadError when the line is not a JSON object. */
  static ofLine(line: TraceLine): TraceRow {
    return new TraceRow(`line ${line.number}`, jsonOf(line));
  }

  has(key: string): boolean {
    return this.#fields[key] !== undefined && this.#fields[key] !== null;
  }

  /** A whole number, at least `least`. */
  count(key: string, least = 0): number {
    const value = this.#fields[key];
    if (!isCount(value) || value < least) throw this.#unexpected(key, `a whole number of at least ${least}`);
    return value;
  }

  /** A number that is not negative. */
  amount(key: string): number {
    const value = this.#fields[key];
    if (typeof value !== "number" || value < 0) throw this.#unexpected(key, "a number of at least 0");
    return value;
  }

  text(key: string): string {
    const value = this.#fields[key];
    if (typeof value !== "string") throw this.#unexpected(key, "a text");
    return value;
  }

  texts(key: string): readonly string[] {
    const value = this.#fields[key];
    if (!Array.isArray(value) || !value.every((entry) => typeof entry === "string")) {
      throw this.#unexpected(key, "a list of texts");
    }
    return value;
  }

  counts(key: string): readonly number[] {
    const value = this.#fields[key];
    if (!Array.isArray(value) || !value.every(isCount)) throw this.#unexpected(key, "a list of whole numbers");
    return value;
  }

  row(key: string): TraceRow {
    return new TraceRow(`${this.#place}: ${key}`, this.#fields[key]);
  }

  rows(key: string): readonly TraceRow[] {
    const value = this.#fields[key];
    if (!Array.isArray(value)) throw this.#unexpected(key, "a list of JSON objects");
    return value.map((entry, index) => new TraceRow(`${this.#place}: ${key}[${index}]`, entry));
  }

  keys(): readonly string[] {
    return Object.keys(this.#fields);
  }

  /** An error about this row as a whole. */
  error(message: string): WorkloadError {
    return new WorkloadError(`${this.#place}: ${message}`);
  }

  #unexpected(key: string, expected: string): WorkloadError {
    const value = this.#fields[key];
    return this.error(`${key}: expected ${expected}, got ${value === undefined ? "nothing" : shown(value)}`);
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
