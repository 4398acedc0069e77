import type { Random } from "../../core/index.ts";
import { drawExponential, drawNormal } from "./draws.ts";

/** Draws lengths or times. */
export interface Distribution {
  draw(random: Random): number;
}

/** Reads an amount in its unit; undefined: it is none. */
export type ReadAmount = (text: string) => number | undefined;

/** What `readDistribution` takes, for messages. */
export const DISTRIBUTION_FORMS =
  "N, uniform(LOW,HIGH), exp(MEAN), lognormal(MEAN,SIGMA) or lognormal(MEAN,p99=P) with P from MEAN to 14.9 MEAN";

/** Reads a distribution of amounts; undefined: it is none. */
export function readDistribution(text: string, readAmount: ReadAmount): Distribution | undefined {
  const amount = readAmount(text);
  if (amount !== undefined) return { draw: () => amount };
  const [, shape = "", parameters = ""] = /^([a-z]+)\(([^()]+)\)$/.exec(text) ?? [];
  const [first = "", second, ...others] = parameters.split(",").map((parameter) => parameter.trim());
  const firstAmount = readAmount(first);
  if (firstAmount === undefined || others.length > 0) return undefined;
  if (shape === "exp") return second === undefined ? exponential(firstAmount) : undefined;
  if (second === undefined) return undefined;
  if (shape === "uniform") return uniform(firstAmount, readAmount(second));
  return shape === "lognormal" ? lognormal(firstAmount, sigmaOf(firstAmount, second, readAmount)) : undefined;
}

function exponential(mean: number): Distribution {
  return { draw: (random) => mean * drawExponential(random) };
}

function uniform(low: number, high: number | undefined): Distribution | undefined {
  if (high === undefined || high < low) return undefined;
  return { draw: (random) => low + random.next() * (high - low) };
}

/** @param sigma Standard deviation of the logarithm. */
function lognormal(mean: number, sigma: number | undefined): Distribution | undefined {
  if (sigma === undefined || mean <= 0) return undefined;
  const median = mean * Math.exp(-(sigma ** 2) / 2);
  return { draw: (random) => median * Math.exp(sigma * drawNormal(random)) };
}

/** The 0.99 quantile of the normal distribution. */
const P99 = 2.326_347_874_040_841;

function sigmaOf(mean: number, text: string, readAmount: ReadAmount): number | undefined {
  if (!text.startsWith("p99=")) return readNumber(text);
  const p99 = readAmount(text.slice("p99=".length));
  if (p99 === undefined || p99 < mean) return undefined;
  // p99 = mean exp(P99 sigma - sigma²/2). Of its two solutions the one with the narrower body; none above 14.97 means.
  const discriminant = P99 ** 2 - 2 * Math.log(p99 / mean);
  return discriminant < 0 ? undefined : P99 - Math.sqrt(discriminant);
}

/** A plain decimal number that is not negative; undefined: it is none. */
export function readNumber(text: string): number | undefined {
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : undefined;
}
