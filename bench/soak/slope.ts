/** A straight line through measurements. */
export interface Slope {
  /** Change of the value per unit of time. */
  readonly perUnit: number;
  /** Standard error of that. */
  readonly standardError: number;
}

/** Least squares over points of time and value. NaN for fewer than three. */
export function slopeOf(points: readonly (readonly [time: number, value: number])[]): Slope {
  const count = points.length;
  const meanTime = points.reduce((sum, [time]) => sum + time, 0) / count;
  const meanValue = points.reduce((sum, [, value]) => sum + value, 0) / count;
  let timeSquares = 0;
  let products = 0;
  for (const [time, value] of points) {
    timeSquares += (time - meanTime) ** 2;
    products += (time - meanTime) * (value - meanValue);
  }
  const perUnit = products / timeSquares;
  const residuals = points.reduce(
    (sum, [time, value]) => sum + (value - meanValue - perUnit * (time - meanTime)) ** 2,
    0,
  );
  return { perUnit, standardError: Math.sqrt(residuals / (count - 2) / timeSquares) };
}

/** Of one side, 1 in 100: beyond so many standard errors a slope is no accident. */
const SIGNIFICANT_ERRORS = 2.33;

/** Whether the slope is above `bound` by more than chance makes likely. */
export function isSignificantlyAbove({ perUnit, standardError }: Slope, bound: number): boolean {
  return !(perUnit - SIGNIFICANT_ERRORS * standardError <= bound);
}
