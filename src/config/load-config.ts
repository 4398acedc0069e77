import { readFileSync } from "node:fs";
import { type PolicyDefinition, policyDefinitions } from "../core/index.ts";
import type { Config } from "./config.ts";
import type { Environment } from "./interpolation.ts";
import type { Checked } from "./problem.ts";
import { type Flags, readSettings, type Sources } from "./read-settings.ts";
import { configSchema } from "./schema.ts";

/** Reads the configuration of a balancer from text at hand. @param policies Default: all there are. */
export function readConfig(
  sources: Sources,
  policies: readonly PolicyDefinition[] = policyDefinitions,
): Checked<Config> {
  return readSettings(configSchema(policies), sources);
}

/** Reads the configuration of a balancer. @param path Of the YAML file; undefined: there is none. */
export function loadConfig(path: string | undefined, environment: Environment, flags: Flags = {}): Checked<Config> {
  if (path === undefined) return readConfig({ environment, flags });
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const reason = error instanceof Error && "code" in error ? ` (${error.code})` : "";
    return {
      ok: false,
      problems: [{ path: "", source: path, found: `not readable${reason}`, expected: "a YAML file" }],
    };
  }
  return readConfig({ file: { name: path, text }, environment, flags });
}
