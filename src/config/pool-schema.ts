import { z } from "zod";
import { ENGINE_KINDS, type HoldingLimits } from "../core/index.ts";
import type { DiscoverySource, EndpointConfig, PolicyConfig, PoolConfig } from "./config.ts";
import { discoverySource } from "./discovery-schema.ts";
import { type EndpointLocation, endpointUrl } from "./endpoint-url.ts";
import { Secret } from "./secret.ts";
import { poolHolding } from "./sections.ts";
import { endpointTls } from "./tls-schema.ts";

/** A pool as written: what it leaves out is what all pools have. */
export interface WrittenPool extends Omit<PoolConfig, "policy" | "holding"> {
  readonly policy: PolicyConfig | undefined;
  readonly holding: Partial<HoldingLimits>;
}

/** A model by the name clients and engines use for it. */
export const modelName: z.ZodType<string> = text(/^\S(.*\S)?$/, "a model name").meta({ value: "model" });

/** Aliases by name, each with the model it stands for. */
export const aliases: z.ZodType<ReadonlyMap<string, string>> = z
  .record(modelName, modelName)
  .transform((models) => new Map(Object.entries(models)))
  .meta({ value: "mapping of alias to model" });

/** Large enough for any ratio, small enough that the sum over a pool stays exact to many digits. */
const MAX_WEIGHT = 1_000_000;

const ENDPOINT_ID = /^[A-Za-z0-9._:/@[\]-]{1,128}$/;
const POOL_NAME = /^[A-Za-z0-9._-]{1,64}$/;

/** What an HTTP header can carry; a line end at the end of a key, as files bring it, is found here. */
const API_KEY = /^[\x21-\x7e]+$/;

const endpointMapping = z.strictObject({
  url: endpointUrl.describe("Base URL, http or https; `host:port` means http. IPv6 in brackets. Without `/v1`."),
  id: text(ENDPOINT_ID, "up to 128 of letters, digits and . _ : / @ [ ] -")
    .optional()
    .describe("Name in headers, metrics and explanations, unique in its pool; absent: host, port and path of the URL.")
    .meta({ value: "id" }),
  weight: z
    .number()
    .min(0)
    .max(MAX_WEIGHT)
    .default(1)
    .describe("Relative share under the weighted policies; 0 takes no new traffic."),
  engine: z
    .enum(["auto", ...ENGINE_KINDS])
    .default("auto")
    .describe("What runs there; `auto`: found out by probing."),
  tokensPerSecond: z
    .number()
    .positive()
    .optional()
    .describe("Capacity in output tokens per second; absent: learned from the streams."),
  kvCapacityTokens: z
    .int()
    .positive()
    .optional()
    .describe("Size of the KV cache in tokens; absent: what the engine reports."),
  apiKey: text(API_KEY, "a key without spaces and line ends")
    .transform((key) => new Secret(key))
    .optional()
    .describe("Sent as bearer token in place of the client's; absent: the client's credentials pass through.")
    .meta({ value: "secret", secret: true }),
  models: z.array(modelName).min(1).optional().describe("Models it serves; absent: those it reports."),
  maxRequests: z
    .int()
    .min(1)
    .optional()
    .describe("Requests it has at a time at most; further ones go elsewhere or are held. Absent: no limit."),
  tls: endpointTls.optional().describe("TLS towards it: `ca`, `cert` and `key` (paths), `serverName`, `insecure`."),
});

/** An endpoint: its URL alone, or a mapping. */
export const endpointEntry: z.ZodType<EndpointConfig> = z
  .union([
    endpointUrl.transform((url) => toEndpoint({ url, weight: 1, engine: "auto" })),
    endpointMapping.transform(toEndpoint),
  ])
  .meta({ value: "url" });

/** Where a pool finds further endpoints. */
export const discovery: z.ZodType<readonly DiscoverySource[]> = z.array(discoverySource);

/** @param policy Schema of a policy, made from the table of policies. */
export function poolMapping(policy: z.ZodType<PolicyConfig>): z.ZodType<WrittenPool> {
  return z
    .strictObject({
      name: text(POOL_NAME, "up to 64 of letters, digits and . _ -")
        .describe("Name in metrics and explanations, unique.")
        .meta({ value: "name" }),
      endpoints: z.array(endpointEntry).default([]).describe("Its inference servers."),
      discovery: discovery
        .default([])
        .describe("Where further ones are found: `file: path`, or `dns: name:port` with an `interval`."),
      models: z
        .array(modelName)
        .min(1)
        .optional()
        .describe("Models it answers for; absent: those its endpoints report."),
      aliases: aliases.prefault({}).describe("Further names clients may use, each with its model."),
      policy: policy.optional().describe("Its policy; absent: the policy above."),
      holding: poolHolding
        .prefault({})
        .describe("Its own bounds, as many as it has; absent: those of `holding`.")
        .meta({ value: "mapping" }),
    })
    .transform(({ models, policy, ...pool }) => ({ ...pool, models, policy }));
}

type WrittenEndpoint = Pick<EndpointConfig, "weight" | "engine"> & { readonly url: EndpointLocation } & {
  readonly [Key in "id" | "tokensPerSecond" | "kvCapacityTokens" | "apiKey" | "models" | "maxRequests" | "tls"]?:
    | EndpointConfig[Key]
    | undefined;
};

function toEndpoint({ url: location, id, weight, engine, ...known }: WrittenEndpoint): EndpointConfig {
  return {
    id: id ?? location.id,
    url: location.url,
    weight,
    engine,
    tokensPerSecond: known.tokensPerSecond,
    kvCapacityTokens: known.kvCapacityTokens,
    apiKey: known.apiKey,
    models: known.models,
    maxRequests: known.maxRequests,
    tls: known.tls,
  };
}

function text(form: RegExp, expected: string): z.ZodString {
  return z.string({ error: expected }).regex(form, { error: expected });
}
