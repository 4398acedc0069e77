const FORM = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/;
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** Milliseconds of a length of time such as `250ms`, `30s`, `1.5m` or `2h`; undefined: the text is none. */
export function parseDurationMs(text: string): number | undefined {
  const [, amount, unit] = FORM.exec(text) ?? [];
  return unit === undefined ? undefined : Number(amount) * (UNIT_MS[unit] as number);
}
