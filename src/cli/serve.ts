import { Command } from "commander";
import type { Config } from "../config/index.ts";
import { startServer } from "../gateway/index.ts";
import type { ConfigSource } from "../runtime/index.ts";
import { type RunningWorkers, startWorkers } from "../workers/index.ts";
import { addConfigOptions, configFile, readConfigOptions } from "./config-options.ts";
import { EXIT, reportProblems } from "./report.ts";
import { startFailure } from "./start-failure.ts";
import type { Terminal } from "./terminal.ts";

/** `evenkeel serve`: the balancer, until it is told to stop. @param done Takes the exit code. */
export function serveCommand(terminal: Terminal, done: (code: number) => void): Command {
  const command = new Command("serve")
    .summary("balance inference servers")
    .description("Balances inference servers behind one OpenAI-compatible address.")
    .addHelpText("after", SERVE_EXAMPLES);
  addConfigOptions(command);
  command.action(async () => {
    const source = { file: configFile(command, terminal), load: () => readConfigOptions(command, terminal) };
    const checked = source.load();
    if (checked.ok) return done(await serve(checked.value, source, terminal));
    reportProblems(checked.problems, terminal);
    done(EXIT.failed);
  });
  return command;
}

const SERVE_EXAMPLES = `
Every option is also a variable: --timeouts-idle is EVENKEEL_TIMEOUTS_IDLE. Lists are separated by
commas: EVENKEEL_ENDPOINTS, EVENKEEL_MODELS. A flag wins over a variable, a variable over the file.

Examples:
  evenkeel serve --endpoint http://10.0.0.7:8000 --endpoint http://10.0.0.8:8000
  evenkeel serve --config evenkeel.yaml --log-level debug
  evenkeel serve --config evenkeel.yaml --workers auto

SIGTERM or Ctrl-C lets running requests finish; a second one ends them. With --config, SIGHUP and every change of the
file put what it says into force without a restart.`;

async function serve(config: Config, source: ConfigSource, terminal: Terminal): Promise<number> {
  let isStopped = false;
  const stopped = terminal.untilStopped().then(() => {
    isStopped = true;
  });
  let running: Running | undefined;
  // Without a file there is nothing to read again, and a closed terminal ends the process as it ends others.
  if (source.file !== undefined) terminal.onHangUp(() => void running?.reloader.reload("signal"));
  try {
    running = await (config.workers === 1 ? startAlone(config, source) : startWorkers(config, source));
  } catch (error) {
    // Ctrl-C goes to workers too, and ends those that are not up yet: no failure, since nobody wants them any more.
    if (isStopped && config.workers > 1) return EXIT.ok;
    terminal.writeError(`error: ${startFailure(error)}\n`);
    return EXIT.failed;
  }
  const { log, listenUrl, adminUrl } = running;
  const { workers, timeouts } = config;
  log.info({ listen: listenUrl, admin: adminUrl, ...(workers > 1 && { workers }), timeouts }, "serving");
  await stopped;
  log.info({ drainMs: timeouts.drainMs }, "stopping once running requests are done");
  await running.close();
  return EXIT.ok;
}

/** A balancer that serves, in one process or in several. */
type Running = RunningWorkers;

async function startAlone(config: Config, source: ConfigSource): Promise<Running> {
  const { runtime, listenUrl, adminUrl, close } = await startServer(config, { source });
  return { listenUrl, adminUrl, log: runtime.log, reloader: runtime.reloader, close };
}
