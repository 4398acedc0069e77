import { z } from "zod";
import type { PolicyDefinition } from "../core/index.ts";
import type { Config } from "./config.ts";
import { crossCheck } from "./cross-checks.ts";
import { adminKey, clientKey } from "./key-schema.ts";
import { listenAddress } from "./listen-address.ts";
import { passthroughPath } from "./passthrough-path.ts";
import { policyChoice } from "./policy-choice.ts";
import { aliases, discovery, endpointEntry, modelName, poolMapping } from "./pool-schema.ts";
import { failover, health, hedging, holding, limits, log, recording, streams, timeouts } from "./sections.ts";
import { sessionKeySource } from "./session-key-source.ts";
import { listenerTls } from "./tls-schema.ts";
import { workers } from "./workers-schema.ts";
import { isMapping } from "./written.ts";

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
        .describe("Inference servers to balance as one pool. `endpoints`, `discovery` or `pools` is required.")
        .meta({ flag: "--endpoint" }),
      discovery: discovery
        .optional()
        .describe("Where endpoints of that pool are found: `file: path`, or `dns: name:port` with an `interval`."),
      policy: policy
        .prefault("least_delay")
        .describe("How endpoints are chosen, in every pool that names no policy of its own."),
      listen: listenAddress.prefault("127.0.0.1:8080").describe("Where clients connect."),
      admin: z
        .union([listenAddress, z.literal("off").transform(() => undefined)])
        .prefault("127.0.0.1:9090")
        .describe("Where metrics and the admin API are served; `off`: nowhere.")
        .meta({ value: "host:port|off" }),
      workers,
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
      keys: z
        .array(clientKey)
        .default([])
        .describe(
          "Who may send requests: `id`, `hash` and what each may use; none: everyone, with credentials passed on.",
        ),
      adminKeys: z
        .array(adminKey)
        .default([])
        .describe("Who may use the admin listener: `id` and `hash` each; none: whoever can connect to it."),
      tenantKey: z
        .array(sessionKeySource)
        .default([])
        .describe("Where a request's tenant may be that comes without a key of `keys`, first match wins."),
      tls: listenerTls,
      failover,
      hedging,
      streams,
      timeouts,
      limits,
      holding,
      health,
      recording,
      log,
    })
    .superRefine(crossCheck, { when: ({ value }) => isMapping(value) })
    .transform(({ policy, holding, endpoints = [], models, aliases = new Map(), pools, ...settings }): Config => {
      const { discovery = [], ...others } = settings;
      const written = pools ?? [{ name: "default", models, aliases, policy, holding, endpoints, discovery }];
      return {
        ...others,
        sessionKey: settings.sessionKey,
        recording: settings.recording,
        tls: settings.tls,
        hedging: settings.hedging,
        pools: written.map((pool) => ({
          ...pool,
          policy: pool.policy ?? policy,
          holding: { ...holding, ...pool.holding },
        })),
      };
    });
}
