import type { Summary } from "./report/summary.ts";
import { CAPACITY_GOODPUT, type SweepPoint, type SweepVariable } from "./report/sweep.ts";

/** What to vary, and from where to where. */
export interface SweepSpec {
  readonly variable: SweepVariable;
  readonly from: number;
  readonly to: number;
  /** From one value to the next; undefined: the values are searched, halving what is in question. */
  readonly step: number | undefined;
}

const FORM = /^(rate|endpoints)=(\d+(?:\.\d+)?)\.\.(\d+(?:\.\d+)?)(?:\/(\d+(?:\.\d+)?))?$/;

/**
 * Reads a sweep: `rate=1..4` or `endpoints=4..16`, searched, or with a step, `rate=1..4/0.5`.
 * @throws RangeError when it cannot be read; the message says what could.
 */
export function parseSweep(text: string): SweepSpec {
  const [, name, from = "", to = "", step] = FORM.exec(text) ?? [];
  if (name === undefined) {
    throw new RangeError(
      `"${text}" is no sweep; expected rate=FROM..TO or endpoints=FROM..TO, and /STEP after it for steps`,
    );
  }
  const variable = name as SweepVariable;
  const spec = { variable, from: Number(from), to: Number(to), step: step === undefined ? undefined : Number(step) };
  if (!(spec.from > 0 && spec.from < spec.to)) {
    throw new RangeError(`"${text}": expected two numbers above 0, the smaller one first`);
  }
  if (spec.step === 0) throw new RangeError(`"${text}": a step must be above 0`);
  if (variable === "endpoints" && ![spec.from, spec.to, spec.step ?? 1].every(Number.isInteger)) {
    throw new RangeError(`"${text}": endpoints come in whole numbers`);
  }
  return spec;
}

/**
 * Simulates one policy at several values. `run` may take its time; values that do not depend on one another are asked
 * for at once.
 */
export async function sweep(spec: SweepSpec, run: (value: number) => Promise<Summary>): Promise<SweepPoint[]> {
  const at = async (value: number): Promise<SweepPoint> => {
    return { variable: spec.variable, value, summary: await run(value) };
  };
  const points = spec.step === undefined ? await search(spec, at) : await Promise.all(gridOf(spec, spec.step).map(at));
  return points.toSorted((a, b) => a.value - b.value);
}

/** Both ends are in it. */
function gridOf({ from, to }: SweepSpec, step: number): number[] {
  const steps = Math.ceil((to - from) / step - ROUNDING);
  return Array.from({ length: steps + 1 }, (_, i) => (i === steps ? to : rounded(from + i * step)));
}

/** Halves the range between a value that carries the load and one that does not, until they are near enough. */
async function search(spec: SweepSpec, at: (value: number) => Promise<SweepPoint>): Promise<SweepPoint[]> {
  const points = await Promise.all([at(spec.from), at(spec.to)]);
  const [low, high] = points;
  if (low === undefined || high === undefined || carries(low) === carries(high)) return points;
  const isLowGood = carries(low);
  let from = spec.from;
  let to = spec.to;
  for (let value = between(spec, from, to); value !== undefined; value = between(spec, from, to)) {
    const point = await at(value);
    points.push(point);
    if (carries(point) === isLowGood) from = value;
    else to = value;
  }
  return points;
}

function carries({ summary }: SweepPoint): boolean {
  return summary.goodputRatio >= CAPACITY_GOODPUT;
}

/** Undefined: what is between does not matter any more. */
function between({ variable }: SweepSpec, from: number, to: number): number | undefined {
  if (variable === "endpoints") return to - from <= 1 ? undefined : Math.floor((from + to) / 2);
  return to / from - 1 <= RATE_PRECISION ? undefined : rounded((from + to) / 2);
}

/** Capacities that are nearer to each other than this are the same: seeds alone make as much. */
const RATE_PRECISION = 0.02;

/** Of sums of steps that no double holds exactly. */
const ROUNDING = 1e-9;

function rounded(value: number): number {
  return Number(value.toPrecision(4));
}
