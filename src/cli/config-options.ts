import type { Command } from "commander";
import {
  type Checked,
  type Config,
  configSchema,
  loadConfig,
  type Setting,
  settingsOf,
  valuesOf,
} from "../config/index.ts";
import { policyDefinitions } from "../core/index.ts";
import { addSettingFlags, givenFlags } from "./setting-flags.ts";
import type { Terminal } from "./terminal.ts";

/** The variable that names the file; the flag wins. */
const CONFIG_VARIABLE = "EVENKEEL_CONFIG";

const settings: readonly Setting[] = settingsOf(configSchema(policyDefinitions));

/** Gives `command` the file, and those settings of a balancer that are `wanted` as flags. */
export function addConfigOptions(command: Command, wanted: (setting: Setting) => boolean = () => true): void {
  command.option("-c, --config <file>", "YAML file with the settings; flags and variables win over it.");
  addSettingFlags(command, valuesOf(settings).filter(wanted));
}

/** The configuration that was asked for by file, variables and flags. */
export function readConfigOptions(command: Command, terminal: Terminal): Checked<Config> {
  return loadConfig(configFile(command, terminal), terminal.environment, givenFlags(command, settings));
}

/** The file that was asked for; undefined: none. */
export function configFile(command: Command, { environment }: Terminal): string | undefined {
  const { config } = command.opts<{ readonly config?: string }>();
  return config ?? (environment[CONFIG_VARIABLE] || undefined);
}
