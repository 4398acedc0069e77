import { Command } from "commander";
import {
  type Config,
  type DiscoverySource,
  formatListenAddress,
  type KeyHash,
  type PoolConfig,
  type Problem,
} from "../config/index.ts";
import { addConfigOptions, readConfigOptions } from "./config-options.ts";
import { EXIT, formatTable, reportProblems } from "./report.ts";
import type { Terminal } from "./terminal.ts";

/** `evenkeel check`: says whether a configuration is right, and what it means. @param done Takes the exit code. */
export function checkCommand(terminal: Terminal, done: (code: number) => void): Command {
  const command = new Command("check")
    .summary("check a configuration and show what would run")
    .description(
      "Checks a configuration, reports everything that is wrong with it, and shows what would run. Starts nothing.",
    )
    .option("--json", "Print one JSON object.")
    .addHelpText("after", CHECK_EXAMPLES);
  addConfigOptions(command);
  command.action(() => {
    const { json: asJson } = command.opts<{ readonly json?: true }>();
    const checked = readConfigOptions(command, terminal);
    const problems = checked.ok ? [] : checked.problems;
    if (asJson)
      terminal.write(`${JSON.stringify(jsonReport(problems, checked.ok ? checked.value : undefined), null, 2)}\n`);
    else if (checked.ok) terminal.write(summary(checked.value));
    else reportProblems(problems, terminal);
    done(checked.ok ? EXIT.ok : EXIT.failed);
  });
  return command;
}

const CHECK_EXAMPLES = `
Examples:
  evenkeel check --config evenkeel.yaml
  evenkeel check --endpoint http://10.0.0.7:8000 --policy token_aware

Exit code: 0 when the configuration is right, 1 when it is not.`;

/** Secrets stay hidden: they serialise as a placeholder. */
function jsonReport(problems: readonly Problem[], config: Config | undefined): object {
  if (config === undefined) return { ok: false, problems };
  const pools = config.pools.map((pool) => ({ ...pool, aliases: Object.fromEntries(pool.aliases) }));
  const { keys, adminKeys } = config;
  return { ok: true, config: { ...config, pools, keys: keys.map(inHex), adminKeys: adminKeys.map(inHex) } };
}

function inHex<Key extends KeyHash>(key: Key): object {
  return { ...key, sha256: key.sha256.toString("hex") };
}

function summary(config: Config): string {
  const { listen, tls, admin, keys, adminKeys, pools } = config;
  const lines = [
    "The configuration is right.\n",
    `listen  ${formatListenAddress(listen)}${tls === undefined ? "" : " (TLS)"}`,
    `admin   ${admin === undefined ? "off" : formatListenAddress(admin)}, ${keysSummary(adminKeys, "whoever can connect")}`,
    `keys    ${keysSummary(keys, "none: everyone may send, and credentials are passed on")}`,
  ];
  return `${lines.join("\n")}\n${pools.map(poolSummary).join("")}`;
}

function keysSummary(keys: readonly KeyHash[], none: string): string {
  return keys.length === 0 ? none : keys.map(({ id }) => id).join(", ");
}

function discoverySummary(source: DiscoverySource): string {
  if (source.kind === "file") return `  found   in ${source.path}\n`;
  const { scheme, host, port, basePath, intervalMs } = source;
  return `  found   at ${scheme}://${host}:${port}${basePath}, every ${intervalMs / 1000} s\n`;
}

function poolSummary({ name, policy, models, aliases, endpoints, discovery }: PoolConfig): string {
  const options = Object.entries(policy.options as object).map(([key, value]) => `${key}: ${value}`);
  const rows = endpoints.map((one) => [
    `  ${one.id}`,
    one.url,
    one.engine,
    String(one.weight),
    one.apiKey ? "yes" : "",
  ]);
  return [
    `\npool ${name}\n`,
    `  policy  ${policy.name}${options.length > 0 ? ` (${options.join(", ")})` : ""}\n`,
    `  models  ${models?.join(", ") ?? "those the endpoints report"}\n`,
    ...[...aliases].map(([alias, model]) => `  alias   ${alias} -> ${model}\n`),
    ...discovery.map(discoverySummary),
    endpoints.length === 0 ? "" : formatTable(["  endpoint", "url", "engine", "weight", "key"], rows),
  ].join("");
}
