import { type Config, pack } from "../config/index.ts";
import { type AdminAnswer, type AdminAsked, isGood } from "../gateway/index.ts";
import { compareConfigs, Listeners, type OperatorChanges, type ReconfigureReport } from "../runtime/index.ts";
import { askEach } from "./ask-each.ts";
import type { CommonState } from "./messages.ts";
import { WorkerError, type WorkerProcess } from "./worker-process.ts";

/**
 * What all workers serve by: the configuration in force and what operators changed. Whatever changes is tried by one
 * worker or checked here, then held here, then taken on by all: one that begins later begins with it.
 */
export class Common {
  /** Told when another configuration is in force. */
  readonly configured: Listeners = new Listeners();
  readonly #serving: () => readonly WorkerProcess[];
  #config: Config;
  #state: CommonState;
  /** Changes follow one another. */
  #last: Promise<unknown> = Promise.resolve();

  /** @param serving Those that serve now. */
  constructor(config: Config, serving: () => readonly WorkerProcess[]) {
    this.#config = config;
    this.#serving = serving;
    this.#state = { config: pack(config), changes: pack<OperatorChanges>(new Map()) };
  }

  get config(): Config {
    return this.#config;
  }

  get state(): CommonState {
    return this.#state;
  }

  /** Resolves when all that was changed by now has reached all workers. */
  get settled(): Promise<unknown> {
    return this.#last;
  }

  /** Puts another configuration into force, as a whole or not at all; the workers take it on from now on. */
  reconfigure(config: Config): ReconfigureReport {
    const report = compareConfigs(this.#config, config);
    if (report.kind !== "applied") return report;
    this.#config = config;
    this.#state = { ...this.#state, config: pack(config) };
    this.configured.tell();
    void this.#inTurn(() => this.#handOn());
    return report;
  }

  /** One worker changes endpoints, or refuses to; if it does, all others have it too. @returns what each shows then, or the refusal. */
  change(asked: AdminAsked): Promise<readonly [AdminAnswer, ...AdminAnswer[]]> {
    return this.#inTurn(async () => {
      const [first, ...others] = this.#serving();
      if (first === undefined) throw new WorkerError("no worker serves");
      const { answer, changes } = await first.ask({ kind: "change", asked }).catch((error: unknown) => {
        // Whoever asked is told that nothing has changed: one that was only slow takes it back.
        void first.ask({ kind: "take", state: this.#state }).catch(() => {});
        throw error;
      });
      if (!isGood(answer)) return [answer];
      this.#state = { ...this.#state, changes };
      const state = this.#state;
      const shown = await askEach(others, { kind: "changed", asked, state });
      return [answer, ...shown.flatMap((one) => (one.ok ? [one.answer] : []))];
    });
  }

  /**
   * The worker begins to serve, which it does when it knows what changed while it began, and what keys have used.
   * @param serves Called then, before anything changes again.
   */
  joins(worker: WorkerProcess, serves: () => void): Promise<void> {
    return this.#inTurn(async () => {
      if (worker.startedWith !== this.#state) await worker.ask({ kind: "take", state: this.#state });
      const [other] = this.#serving();
      const uses = await other?.ask({ kind: "keysOutstanding" }).catch(() => undefined);
      if (uses !== undefined) await worker.ask({ kind: "keysUsed", uses });
      serves();
    });
  }

  /** To all; the changes that the first has then hold, for what a reload took away is gone with its pool. */
  async #handOn(): Promise<void> {
    const [first, ...others] = this.#serving();
    const changes = await first?.ask({ kind: "take", state: this.#state }).catch(() => undefined);
    if (changes !== undefined) this.#state = { ...this.#state, changes };
    const state = this.#state;
    await askEach(others, { kind: "take", state });
  }

  #inTurn<Result>(change: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(change);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
