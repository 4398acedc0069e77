import { type EndpointConfig, formatProblem, readEndpointList } from "../../config/index.ts";
import { FileWatch } from "../file-watch.ts";
import type { Log } from "../log.ts";
import type { EndpointSource, SourceSurroundings } from "./endpoint-source.ts";

/** Endpoints listed in a file of their own. */
export class FileSource implements EndpointSource {
  readonly #path: string;
  readonly #log: Log;
  readonly #found: (endpoints: readonly EndpointConfig[]) => void;
  readonly #watch: FileWatch;
  #isStopped = false;

  constructor(
    path: string,
    { clock, log }: Pick<SourceSurroundings, "clock" | "log">,
    found: (endpoints: readonly EndpointConfig[]) => void,
    intervalMs?: number,
  ) {
    this.#path = path;
    this.#log = log;
    this.#found = found;
    this.#watch = new FileWatch({
      path,
      clock,
      intervalMs,
      changed: (text) => this.#read(text),
      unreadable: (reason) => this.#keep([`not readable (${reason})`]),
    });
  }

  start(): void {
    this.#watch.start();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#watch.stop();
  }

  #read(text: string): void {
    if (this.#isStopped) return;
    const checked = readEndpointList({ name: this.#path, text }, process.env);
    if (checked.ok) this.#found(checked.value);
    else this.#keep(checked.problems.map(formatProblem));
  }

  #keep(problems: readonly string[]): void {
    if (this.#isStopped) return;
    this.#log.error(
      { file: this.#path, problems },
      "the list of endpoints cannot be used; what was found last counts on",
    );
  }
}
