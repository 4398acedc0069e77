import { writeFileSync } from "node:fs";
import { Command } from "commander";
import {
  ENGINE_PROFILES,
  formatSummaryMarkdown,
  formatSummaryTable,
  type Report,
  renderHtml,
  reportJson,
  summarize,
} from "../../sim/index.ts";
import { readPageAssets } from "../page-assets.ts";
import { EXIT } from "../report.ts";
import type { Terminal } from "../terminal.ts";
import { failureOf } from "./failure.ts";
import { addSimulateOptions, type SimulateOptions, settingsOf } from "./options.ts";
import { POLICY_GROUPS } from "./policies.ts";
import { ProgressBar } from "./progress-bar.ts";
import { createRunPool } from "./run-pool.ts";
import { Runner } from "./runner.ts";
import type { SimulateSettings } from "./settings.ts";
import { type SimulateOutcome, simulateAll } from "./simulate-all.ts";
import { formatSweep } from "./sweep-table.ts";

/** `evenkeel simulate`: policies on a trace and a fleet, in virtual time. @param done Takes the exit code. */
export function simulateCommand(terminal: Terminal, done: (code: number) => void): Command {
  const command: Command = new Command("simulate")
    .summary("compare policies on a trace and a fleet, without either")
    .description(
      "Sends the requests of a trace through the balancer to a fleet of modelled engines, in virtual time, and reports how they fared under each policy. Needs no GPU; docs/simulator.md says what is modelled and where traces are published.",
    )
    .addHelpText("after", () => helpText(terminal.columns));
  addSimulateOptions(command);
  const given = recordGiven(command);
  command.action(async () => {
    const options = command.opts<SimulateOptions>();
    const settings = settingsOf(options, ["evenkeel simulate", ...given].join(" "));
    if (typeof settings === "string") command.error(`error: ${settings}`, { exitCode: EXIT.usage });
    done(await runCommand(settings, options, terminal));
  });
  return command;
}

function helpText(columns: number): string {
  const policies = POLICY_GROUPS.map(([group, names]) => wrapped(`${group}: ${names.join(", ")}`, columns));
  return `
Examples:
  evenkeel simulate
  evenkeel simulate --trace azure-2023-conv.csv --fleet '8*llama8b-h100' --rate 10 --html report.html
  evenkeel simulate --trace azure-2023-conv.csv --policies all --seed 1,2,3 --json report.json
  evenkeel simulate --trace azure-2023-conv.csv --rate 4 --fleet llama8b-a100 --sweep endpoints=2..16

Policies:
${policies.join("\n")}

Engine profiles:
${ENGINE_PROFILES.map(({ name, summary }) => `  ${name.padEnd(18)} ${summary}`).join("\n")}

Exit code: 0 when the simulations ran, 1 when they could not, 2 when the command line was not understood.`;
}

async function runCommand(settings: SimulateSettings, options: SimulateOptions, terminal: Terminal): Promise<number> {
  try {
    const { report, notes } = await simulated(settings, terminal);
    if (options.json !== undefined) writeTo(options.json, `${JSON.stringify(reportJson(report), null, 2)}\n`, terminal);
    if (options.html !== undefined) writeTo(options.html, renderHtml(report, readPageAssets()), terminal);
    if (options.json !== "-" && options.html !== "-") terminal.write(tableOf(report, options.markdown === true));
    for (const note of notes) terminal.writeError(`note: ${note}\n`);
    return EXIT.ok;
  } catch (error) {
    terminal.writeError(`error: ${failureOf(error, settings.runs.input.trace)}\n`);
    return EXIT.failed;
  }
}

async function simulated(settings: SimulateSettings, terminal: Terminal): Promise<SimulateOutcome> {
  const runner = new Runner(settings.runs);
  // Before processes are started: each of them would say what is wrong with the trace.
  runner.workload(settings.seeds[0] ?? 1);
  const runs = settings.policies.length * settings.seeds.length * (settings.sweep === undefined ? 1 : 2);
  const pool = createRunPool(settings.runs, runner, Math.min(settings.jobs, runs));
  const progress = new ProgressBar({
    isLive: process.stderr.isTTY === true,
    write: (text) => terminal.writeError(text),
    nowMs: () => performance.now(),
  });
  try {
    return await simulateAll(settings, pool, progress);
  } finally {
    progress.end();
    await pool.close();
  }
}

function tableOf({ results, slo, base, sweep }: Report, isMarkdown: boolean): string {
  if (sweep.length > 0) return formatSweep(sweep);
  const summaries = results.map((result) => summarize(result, slo));
  return isMarkdown ? formatSummaryMarkdown(summaries, { base }) : formatSummaryTable(summaries, { base });
}

function writeTo(path: string, text: string, terminal: Terminal): void {
  if (path === "-") terminal.write(text);
  else writeFileSync(path, text);
}

/** Collects options as they are given, in words for a shell: together they are the command line that does this again. */
function recordGiven(command: Command): readonly string[] {
  const given: string[] = [];
  for (const option of command.options) {
    command.on(`option:${option.name()}`, (value: unknown) => {
      given.push(typeof value === "string" ? `${option.long} ${quoted(value)}` : `${option.long}`);
    });
  }
  return given;
}

function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Indented, and broken between words. */
function wrapped(text: string, columns: number): string {
  const lines: string[] = [];
  let line = " ";
  for (const word of text.split(" ")) {
    if (line.length + 1 + word.length > columns) {
      lines.push(line);
      line = "   ";
    }
    line += ` ${word}`;
  }
  return [...lines, line].join("\n");
}
