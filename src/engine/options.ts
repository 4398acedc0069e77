import { z } from "zod";
import { BLOCK_TOKENS, ENGINE_PROFILES, engineProfile } from "../sim/index.ts";
import { type Fault, faultSpec } from "./faults.ts";

/** What the caller of `createEngineServer` may say; whatever is left out takes its default. */
export interface EngineOptions {
  /** HOST:PORT. */
  readonly listen?: string;
  readonly model?: string;
  readonly speed?: number;
  readonly profile?: string;
  readonly kvTokens?: number | undefined;
  readonly maxSequences?: number | undefined;
  readonly maxModelLen?: number | undefined;
  readonly apiKey?: string | undefined;
  readonly seed?: number;
  /** Fault specifications, as `--fault` takes them. */
  readonly faults?: readonly string[];
  readonly allowFaultControl?: boolean;
}

/** The options once checked, with defaults. Undefined: decided by the profile, or off. */
export interface EngineSettings {
  readonly listen: { readonly host: string; readonly port: number };
  readonly model: string;
  readonly speed: number;
  readonly profile: string;
  readonly kvTokens: number | undefined;
  readonly maxSequences: number | undefined;
  readonly maxModelLen: number | undefined;
  readonly apiKey: string | undefined;
  readonly seed: number;
  readonly faults: readonly Fault[];
  readonly allowFaultControl: boolean;
}

/** One field per setting; its metadata names the flag and the environment variable. */
type EngineOptionsSchema = z.ZodObject<{
  [Name in keyof EngineSettings]: z.ZodType<EngineSettings[Name]>;
}>;

const ADDRESS = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/;

const listenAddress = z.string().transform((text, context) => {
  const [, ipv6, name, digits] = ADDRESS.exec(text) ?? [];
  const host = ipv6 ?? name;
  const port = Number(digits);
  if (host !== undefined && port <= 65_535) return { host, port };
  context.addIssue("expected HOST:PORT, with an IPv6 host in brackets");
  return z.NEVER;
});

/** The engine's options: parsing, defaults, flags and documentation come from this one declaration. */
export const engineOptions: EngineOptionsSchema = z
  .strictObject({
    listen: listenAddress
      .prefault("127.0.0.1:8000")
      .describe("Address to listen on, HOST:PORT; port 0 takes a free one")
      .meta({ value: "host:port", flag: "--listen", env: "EVENKEEL_ENGINE_LISTEN" }),
    model: z
      .string()
      .min(1)
      .default("evenkeel-demo")
      .describe("Name of the served model; requests for any other get 404")
      .meta({ flag: "--model", env: "EVENKEEL_ENGINE_MODEL" }),
    speed: z
      .number()
      .positive()
      .default(1)
      .describe("Pace relative to the profile: 0.5 is half as fast")
      .meta({ flag: "--speed", env: "EVENKEEL_ENGINE_SPEED" }),
    profile: z
      .enum(ENGINE_PROFILES.map((profile) => profile.name))
      .default("llama8b-h100")
      .describe("Model and GPU whose measured timing is imitated")
      .meta({ flag: "--profile", env: "EVENKEEL_ENGINE_PROFILE" }),
    kvTokens: z
      .int()
      .min(64)
      .optional()
      .describe("KV cache size in tokens, rounded down to whole blocks; left out: the profile's")
      .meta({ flag: "--kv-tokens", env: "EVENKEEL_ENGINE_KV_TOKENS" }),
    maxSequences: z
      .int()
      .min(1)
      .optional()
      .describe("Requests running at the same time at most; left out: the profile's")
      .meta({ flag: "--max-sequences", env: "EVENKEEL_ENGINE_MAX_SEQUENCES" }),
    maxModelLen: z
      .int()
      .min(16)
      .optional()
      .describe(
        "Context window in tokens, prompt and output together; left out: 131072, or the KV cache where that is smaller",
      )
      .meta({ flag: "--max-model-len", env: "EVENKEEL_ENGINE_MAX_MODEL_LEN" }),
    apiKey: z
      .string()
      .min(1)
      .optional()
      .describe("Key that every /v1/ path asks for; left out: none")
      .meta({ flag: "--api-key", env: "EVENKEEL_ENGINE_API_KEY", secret: true }),
    seed: z
      .int()
      .min(0)
      .default(0)
      .describe("Seed of the generated words and output lengths")
      .meta({ flag: "--seed", env: "EVENKEEL_ENGINE_SEED" }),
    faults: z
      .array(faultSpec)
      .default([])
      .describe("Scripted fault such as status=503,count=3; repeat for several (docs/engine.md)")
      .meta({ value: "fault", flag: "--fault", env: "EVENKEEL_ENGINE_FAULTS", separator: ";" }),
    allowFaultControl: z
      .boolean()
      .default(false)
      .describe("Serve POST /faults, which replaces the fault script while the engine runs")
      .meta({ flag: "--allow-fault-control", env: "EVENKEEL_ENGINE_ALLOW_FAULT_CONTROL" }),
  })
  .check((context) => {
    const { maxModelLen, kvTokens, profile } = context.value;
    const tokens = kvTokens ?? engineProfile(profile)?.kvTokens ?? 0;
    const capacity = tokens - (tokens % BLOCK_TOKENS);
    if (maxModelLen === undefined || maxModelLen <= capacity) return;
    context.issues.push({
      code: "custom",
      input: maxModelLen,
      path: ["maxModelLen"],
      message: `one request must fit the KV cache of ${capacity} tokens`,
    });
  });
