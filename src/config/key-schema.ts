import { z } from "zod";
import type { ClientKey, KeyHash } from "./config.ts";

const ID = /^[A-Za-z0-9._-]{1,64}$/;
const HASH = /^sha256:([0-9a-f]{64})$/;

const expectedId = "up to 64 of letters, digits and . _ -";
const expectedHash = "sha256: and 64 hex digits, as `evenkeel key` prints it";

const id = z.string({ error: expectedId }).regex(ID, { error: expectedId }).meta({ value: "id" });

/** Nothing can be signed in with a hash, but what is no hash may be the key itself, and is not shown. */
const hash: z.ZodType<Buffer, string> = z
  .string({ error: expectedHash })
  .regex(HASH, { error: expectedHash })
  .transform((text) => Buffer.from(HASH.exec(text)?.[1] ?? "", "hex"))
  .meta({ value: "sha256:hex", secret: true });

const named = {
  id: id.describe("Name in logs, unique among the keys."),
  hash: hash.describe("SHA-256 of the key; `evenkeel key` makes both."),
};

const perMinute = z.number().positive().max(1e12).optional();

/** A key of an operator. */
export const adminKey: z.ZodType<KeyHash> = z
  .strictObject(named)
  .transform(({ id, hash }) => ({ id, sha256: hash }))
  .meta({ value: "mapping" });

/** A key of a client. */
export const clientKey: z.ZodType<ClientKey> = z
  .strictObject({
    ...named,
    tenant: id.optional().describe("Whose requests count together when tenants compete; absent: the key's own id."),
    priority: z
      .enum(["low", "normal", "high"])
      .default("normal")
      .describe("The highest its requests may have; `x-evenkeel-priority` may ask for less."),
    requestsPerMinute: perMinute.describe("Requests it may send; absent: no limit."),
    tokensPerMinute: perMinute.describe("Prompt and output tokens it may use; absent: no limit."),
    models: z
      .array(z.string().min(1))
      .min(1)
      .optional()
      .describe("Models it may name, aliases included; absent: all.")
      .meta({ value: "model" }),
  })
  .transform(({ id, hash, tenant, priority, requestsPerMinute, tokensPerMinute, models }) => ({
    id,
    sha256: hash,
    tenant: tenant ?? id,
    priority,
    requestsPerMinute,
    tokensPerMinute,
    models,
  }))
  .meta({ value: "mapping" });
