import { Command } from "commander";
import type { Config } from "../config/index.ts";
import { startServer } from "../gateway/index.ts";
import type { ConfigSource } from "../runtime/index.ts";
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

SIGTERM or Ctrl-C lets running requests finish; a second one ends them. With --config, SIGHUP and every change of the
file put what it says into force without a restart.`;

async function serve(config: Config, source: ConfigSource, terminal: Terminal): Promise<number> {
  const stopped = terminal.untilStopped();
  let server: Awaited<ReturnType<typeof startServer>> | undefined;
  // Without a file there is nothing to read again, and a closed terminal ends the process as it ends others.
  if (source.file !== undefined) terminal.onHangUp(() => void server?.runtime.reloader.reload("signal"));
  try {
    server = await startServer(config, { source });
  } catch (error) {
    terminal.writeError(`error: ${startFailure(error)}\n`);
    return EXIT.failed;
  }
  const { log } = server.runtime;
  log.info({ listen: server.listenUrl, admin: server.adminUrl, timeouts: config.timeouts }, "serving");
  await stopped;
  log.info({ drainMs: config.timeouts.drainMs }, "stopping once running requests are done");
  await server.close();
  return EXIT.ok;
}
