import { z } from "zod";

const FORM = /^(\d+(?:\.\d+)?)(B|KB|MB|GB|KiB|MiB|GiB)?$/;
const UNIT_BYTES: Readonly<Record<string, number>> = {
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
};

const expected = "a size such as 64MiB, 10MB or 65536";

/** A number of bytes, with or without a unit, read as whole bytes. */
export const byteSize: z.ZodType<number, string | number> = z
  .union([z.string({ error: expected }).regex(FORM, { error: expected }), z.int({ error: expected })])
  .transform((size, context) => {
    const [, amount, unit] = FORM.exec(String(size)) ?? [];
    const bytes = Math.round(Number(amount) * (UNIT_BYTES[unit ?? "B"] ?? 0));
    if (bytes > 0 && Number.isSafeInteger(bytes)) return bytes;
    context.addIssue({ code: "custom", message: "a size above zero" });
    return z.NEVER;
  })
  .meta({ value: "size" });
