import { type Checked, type Config, formatProblem, type Problem } from "../config/index.ts";
import type { Clock } from "./clock.ts";
import { FileWatch } from "./file-watch.ts";
import type { Log } from "./log.ts";
import type { ReconfigureReport } from "./reconfiguration.ts";

/** Where the configuration of a process can be read again. */
export interface ConfigSource {
  /** The file it is in, which is watched; undefined: flags and variables alone. */
  readonly file: string | undefined;
  load(): Checked<Config>;
}

/** What became of a reload; whatever it is, a complete and valid configuration is in force. */
export type ReloadReport =
  | ReconfigureReport
  /** What was read cannot be used; the configuration is the one of before. */
  | { readonly kind: "invalid"; readonly problems: readonly Problem[] }
  /** The process was not told where its configuration comes from, or ends. */
  | { readonly kind: "no_source" };

/** Every outcome of a reload that was tried. */
export const RELOAD_RESULTS = ["applied", "unchanged", "invalid", "needs_restart"] as const;
type ReloadResult = (typeof RELOAD_RESULTS)[number];

/** What asked for a reload. */
export type ReloadTrigger = "signal" | "api" | "file";

/** Reads the configuration again when it is asked to, or when its file changes. */
export class Reloader {
  readonly #source: ConfigSource | undefined;
  readonly #apply: (config: Config) => ReconfigureReport;
  readonly #log: Log;
  readonly #watch: FileWatch | undefined;
  readonly #counts: Record<ReloadResult, number> = { applied: 0, unchanged: 0, invalid: 0, needs_restart: 0 };
  #lastResult: ReloadResult = "applied";
  #isWatched = false;
  #isStopped = false;

  constructor(
    source: ConfigSource | undefined,
    apply: (config: Config) => ReconfigureReport,
    {
      clock,
      log,
      watchIntervalMs,
    }: { readonly clock: Clock; readonly log: Log; readonly watchIntervalMs?: number | undefined },
  ) {
    this.#source = source;
    this.#apply = apply;
    this.#log = log;
    this.#watch =
      source?.file === undefined
        ? undefined
        : new FileWatch({
            path: source.file,
            clock,
            intervalMs: watchIntervalMs,
            changed: () => this.#fileChanged(),
            unreadable: (reason) => this.#log.error({ reason }, "the configuration file is not readable"),
          });
  }

  /** How many reloads ended so. */
  get counts(): Readonly<Record<ReloadResult, number>> {
    return this.#counts;
  }

  /** Whether what is configured was in force after the last reload, or after the start. */
  get isUpToDate(): boolean {
    return this.#lastResult === "applied" || this.#lastResult === "unchanged";
  }

  start(): void {
    this.#watch?.start();
  }

  /** Nothing is read any more, whoever asks. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#watch?.stop();
  }

  reload(trigger: ReloadTrigger): ReloadReport {
    if (this.#source === undefined || this.#isStopped) return { kind: "no_source" };
    const checked = this.#source.load();
    const report = checked.ok ? this.#apply(checked.value) : ({ kind: "invalid", problems: checked.problems } as const);
    this.#counts[report.kind]++;
    this.#lastResult = report.kind;
    this.#tell(report, trigger);
    return report;
  }

  /** The first text is the one that the process was started with, or what became of it before anybody looked. */
  #fileChanged(): void {
    const isFirst = !this.#isWatched;
    this.#isWatched = true;
    if (!isFirst) this.reload("file");
  }

  #tell(report: Exclude<ReloadReport, { kind: "no_source" }>, trigger: ReloadTrigger): void {
    switch (report.kind) {
      case "applied":
        this.#log.info({ trigger, changed: report.changed }, "configuration reloaded");
        break;
      case "unchanged":
        this.#log.info({ trigger }, "configuration read again, nothing has changed");
        break;
      case "invalid":
        this.#log.error(
          { trigger, problems: report.problems.map(formatProblem) },
          "configuration not reloaded, the one of before stays in force",
        );
        break;
      case "needs_restart":
        this.#log.error(
          { trigger, settings: report.settings },
          "configuration not reloaded, these settings need a restart; the one of before stays in force",
        );
    }
  }
}
