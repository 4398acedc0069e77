import { z } from "zod";
import type { PolicyDefinition } from "../core/index.ts";
import type { Config } from "./config.ts";
import { crossCheck } from "./cross-checks.ts";
import { listenAddress } from "./listen-address.ts";
import { passthroughPath } from "./passthrough-path.ts";
import { policyChoice } from "./policy-choice.ts";

import { aliases, endpointEntry, modelName, poolMapping } from "./pool-schema.ts";
import { health, holding, limits, log, recording, timeouts } from "./sections.ts";
import { sessionKeySource } from "./session-key-source.ts";
import { isMapping } from "./written.ts";

/** More would only carry an outage to every endpoint. */
const MAX_ATTEMPTS = 16;

/**
 * The one declaration of every setting: the file is parsed by it, and flags, environment variables,
 * help, JSON Schema and the reference page are made from it.
 */
export function configSchema(policies: readonly PolicyDefinition[]): z.ZodType<Config> {
  const policy = policyChoice(policies);
  return z
    .strictObject({
      endpoints: z
        .array(endpointEntry)
        .min(1)
        .optional()
        .describe("Inference servers to balance as one pool. Either `endpoints` or `pools` is required.")
        .meta({ flag: "--endpoint" }),
      policy: policy
        .prefault("least_delay")
        .describe("How endpoints are chosen, in every pool that names no policy of its own."),
      listen: listenAddress.prefault("127.0.0.1:8080").describe("Where clients connect."),
      admin: z
        .union([listenAddress, z.literal("off").transform(() => undefined)])
        .prefault("127.0.0.1:9090")
        .describe("Where metrics and the admin API are served, without authentication; `off`: nowhere.")
        .meta({ value: "host:port|off" }),
      models: z
        .array(modelName)
        .min(1)
        .optional()
        .describe("Models to answer for; absent: those the endpoints report. Not with `pools`.")
        .meta({ flag: "--model" }),
      aliases: aliases.optional().describe("Further names clients may use, each with its model. Not with `pools`."),
      pools: z
        .array(poolMapping(policy))
        .min(1)
        .optional()
        .describe("Several pools, told apart by the model a request names."),
      sessionKey: z
        .array(sessionKeySource)
        .optional()
        .describe(
          "Where a request's session key may be, first match wins; `[]`: nowhere; absent: where clients put it.",
        ),
      passthrough: z
        .array(passthroughPath)
        .default([])
        .describe("Further paths to forward as they come, such as /v1/audio/transcriptions."),
      attempts: z
        .int()
        .min(1)
        .max(MAX_ATTEMPTS)
        .default(3)
        .describe("How many endpoints a request may be tried on, the first included."),
      timeouts,
      limits,
      holding,
      health,
      recording,
      log,
    })
    .superRefine(crossCheck, { when: ({ value }) => isMapping(value) })
    .transform(({ policy, holding, endpoints = [], models, aliases = new Map(), pools, ...settings }): Config => {
      const written = pools ?? [{ name: "default", models, aliases, policy, holding, endpoints }];
      return {
        ...settings,
        sessionKey: settings.sessionKey,
        recording: settings.recording,
        pools: written.map((pool) => ({
          ...pool,
          policy: pool.policy ?? policy,
          holding: { ...holding, ...pool.holding },
        })),
      };
    });
}
