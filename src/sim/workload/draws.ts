import type { Random } from "../../core/index.ts";

/** Exponential with mean 1. */
export function drawExponential(random: Random): number {
  return -Math.log(1 - random.next());
}

/** Normal with mean 0 and standard deviation 1 (Box and Muller 1958; the second normal of a pair is not kept). */
export function drawNormal(random: Random): number {
  return Math.sqrt(2 * drawExponential(random)) * Math.cos(2 * Math.PI * random.next());
}

/**
 * Gamma with scale 1, so its mean is the shape. Marsaglia and Tsang 2000; below shape 1 by their boost from the
 * next shape up. Very small shapes give draws below the smallest number there is: 0.
 */
export function drawGamma(random: Random, shape: number): number {
  if (shape < 1) return drawGamma(random, shape + 1) * (1 - random.next()) ** (1 / shape);
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const normal = drawNormal(random);
    const cube = (1 + c * normal) ** 3;
    if (cube <= 0) continue;
    const logUniform = -drawExponential(random);
    if (logUniform < normal ** 2 / 2 + d * (1 - cube + Math.log(cube))) return d * cube;
  }
}

/** Weibull with scale 1; its mean is Γ(1 + 1/shape). */
export function drawWeibull(random: Random, shape: number): number {
  return drawExponential(random) ** (1 / shape);
}

/** Γ(x) for x >= 0.5, to 13 digits (Lanczos 1964, with g = 7 and nine terms). */
export function gammaFunction(x: number): number {
  const sum = LANCZOS_TERMS.reduce((total, term, index) => total + term / (x + index), LANCZOS_CONSTANT);
  const base = x + LANCZOS_G - 0.5;
  // The power in two halves: whole, it overflows long before Γ does.
  const half = base ** ((x - 0.5) / 2);
  return Math.sqrt(2 * Math.PI) * half * Math.exp(-base) * half * sum;
}

const LANCZOS_G = 7;
const LANCZOS_CONSTANT = 0.999_999_999_999_809_93;
const LANCZOS_TERMS: readonly number[] = [
  676.520_368_121_885_1, -1259.139_216_722_402_8, 771.323_428_777_653_13, -176.615_029_162_140_6,
  12.507_343_278_686_905, -0.138_571_095_265_720_12, 9.984_369_578_019_572e-6, 1.505_632_735_149_311_6e-7,
];
