import type { Clock, Log } from "../runtime/index.ts";
import { RestartDelay } from "./restart-delay.ts";
import { WorkerError, type WorkerProcess } from "./worker-process.ts";

/** A process as far as it is supervised. */
export type Supervised = Pick<WorkerProcess, "number" | "pid" | "started" | "ended" | "drain" | "kill">;

/** What a supervisor needs. */
export interface SupervisorParts<Worker extends Supervised> {
  readonly count: number;
  readonly clock: Clock;
  readonly log: Log;
  /** Begins a process; from then on it may have something to say. */
  readonly fork: (number: number) => Worker;
  /** One is about to serve with the others, which it does when `serves` is called: when it knows what they know. */
  readonly joins: (worker: Worker, serves: () => void) => Promise<void>;
  /** One is gone, whatever it was at. */
  readonly left: (worker: Worker) => void;
}

/** Keeps as many workers as there should be: one that dies has another in its place. */
export class Supervisor<Worker extends Supervised> {
  readonly #parts: SupervisorParts<Worker>;
  readonly #alive = new Set<Worker>();
  readonly #serving = new Map<number, Worker>();
  readonly #waits = new Set<NodeJS.Timeout>();
  #deaths = 0;
  #isStarted = false;
  #isStopping = false;

  constructor(parts: SupervisorParts<Worker>) {
    this.#parts = parts;
  }

  /** Those that serve, by number. */
  get serving(): readonly Worker[] {
    return [...this.#serving].sort(([one], [other]) => one - other).map(([, worker]) => worker);
  }

  /** How many died that should have lived. */
  get deaths(): number {
    return this.#deaths;
  }

  /** Resolves with where they listen when all serve. If one cannot, none does, and it rejects with why. */
  async start(): Promise<string> {
    const numbers = Array.from({ length: this.#parts.count }, (_, i) => i + 1);
    try {
      const [url] = await Promise.all(numbers.map((number) => this.#fill(number, new RestartDelay())));
      if (this.#serving.size < numbers.length) throw new WorkerError("a worker died while others began to serve");
      this.#isStarted = true;
      return url as string;
    } catch (error) {
      await this.kill();
      throw error;
    }
  }

  /**
   * Each lets finish what it has, and ends. Resolves when all have.
   * @param limitMs After which those that are left are ended; undefined: never.
   */
  async drain(limitMs: number | undefined): Promise<void> {
    this.#stop();
    for (const worker of this.#alive) worker.drain();
    const timer = limitMs === undefined ? undefined : setTimeout(() => void this.kill(), limitMs);
    await this.#allEnded();
    clearTimeout(timer);
  }

  async kill(): Promise<void> {
    this.#stop();
    for (const worker of this.#alive) worker.kill();
    await this.#allEnded();
  }

  #stop(): void {
    this.#isStopping = true;
    for (const wait of this.#waits) clearTimeout(wait);
  }

  async #allEnded(): Promise<void> {
    await Promise.all([...this.#alive].map(({ ended }) => ended));
  }

  /** Puts a worker into an empty place, and another whenever one dies there. Resolves with where it listens. */
  async #fill(number: number, delay: RestartDelay): Promise<string> {
    const { clock, fork, joins } = this.#parts;
    const worker = fork(number);
    const bornAtMs = clock.nowMs();
    this.#alive.add(worker);
    void worker.ended.then((how) => {
      this.#gone(worker);
      if (this.#isStarted && !this.#isStopping) this.#replace(worker, how, delay, clock.nowMs() - bornAtMs);
    });
    try {
      const url = await worker.started;
      await joins(worker, () => {
        // Whoever dies while it waits for its turn is gone already, and would never leave again.
        if (this.#alive.has(worker)) this.#serving.set(number, worker);
      });
      return url;
    } catch (error) {
      worker.kill();
      throw error;
    }
  }

  #gone(worker: Worker): void {
    this.#alive.delete(worker);
    if (this.#serving.get(worker.number) === worker) this.#serving.delete(worker.number);
    this.#parts.left(worker);
  }

  #replace({ number, pid }: Worker, how: string, delay: RestartDelay, livedMs: number): void {
    const { log } = this.#parts;
    this.#deaths++;
    const restartMs = delay.nextMs(livedMs);
    log.error({ worker: number, pid, how, restartMs }, "a worker died, another takes its place");
    const wait = setTimeout(() => {
      this.#waits.delete(wait);
      this.#fill(number, delay).then(
        () => log.info({ worker: number }, "a worker serves again"),
        (error: Error) =>
          log.error({ worker: number, reason: error.message }, "a worker did not get as far as serving"),
      );
    }, restartMs);
    this.#waits.add(wait);
  }
}
