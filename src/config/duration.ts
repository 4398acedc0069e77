import { z } from "zod";

const FORM = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/;
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** What Node's timers hold, 2^31 - 1 ms in whole hours: a longer timer would fire at once. */
const MAX_HOURS = 596;

const expected = "a duration such as 250ms, 30s or 10m";

/** A length of time as text, read as milliseconds. */
export const duration: z.ZodType<number, string> = z
  .string({ error: expected })
  .regex(FORM, { error: expected })
  .transform((text, context) => {
    const [, amount, unit] = FORM.exec(text) ?? [];
    const ms = Number(amount) * (UNIT_MS[unit ?? ""] ?? 0);
    if (ms > 0 && ms <= MAX_HOURS * 3_600_000) return ms;
    context.addIssue({ code: "custom", message: `a duration above zero and at most ${MAX_HOURS}h` });
    return z.NEVER;
  })
  .meta({ value: "duration" });

/** The same, or `off` for no limit: undefined. */
export const durationOrOff: z.ZodType<number | undefined, string> = z
  .union([duration, z.literal("off").transform(() => undefined)])
  .meta({ value: "duration|off" });
