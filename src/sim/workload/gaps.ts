import type { Random } from "../../core/index.ts";
import { drawExponential, drawGamma, drawWeibull, gammaFunction } from "./draws.ts";

/** How the gaps between arrivals scatter, apart from their mean, which is 1. */
export interface Gaps {
  draw(random: Random): number;
  /**
   * From a moment that nothing is known of to the next arrival: the rest of a gap that is met with a chance in
   * proportion to its length. Starting with a whole gap instead would begin with a burst: at a coefficient of
   * variation of 6 with 17 arrivals too many.
   */
  drawFirst(random: Random): number;
}

/** Poisson arrivals: they have no memory. */
export const exponentialGaps: Gaps = { draw: drawExponential, drawFirst: drawExponential };

/** @param shape 1 / (coefficient of variation)². */
export function gammaGaps(shape: number): Gaps {
  return {
    draw: (random) => drawGamma(random, shape) / shape,
    // The density of gamma, multiplied by its variable, is that of gamma with the next shape.
    drawFirst: (random) => (random.next() * drawGamma(random, shape + 1)) / shape,
  };
}

/** Weibull gaps. */
export function weibullGaps(shape: number): Gaps {
  const scale = 1 / gammaFunction(1 + 1 / shape);
  return {
    draw: (random) => scale * drawWeibull(random, shape),
    // In y = (x / scale)^shape, the density multiplied by x is that of gamma with shape 1 + 1/shape.
    drawFirst: (random) => random.next() * scale * drawGamma(random, 1 + 1 / shape) ** (1 / shape),
  };
}

/** Times of arrival in [start, end), in the unit of `1 / rate`: `rate * (end - start)` of them in the mean. */
export function* arrivalTimes(
  gaps: Gaps,
  rate: number,
  start: number,
  end: number,
  random: Random,
): Generator<number, void> {
  for (let at = start + gaps.drawFirst(random) / rate; at < end; at += gaps.draw(random) / rate) yield at;
}
