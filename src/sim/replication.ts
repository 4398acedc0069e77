import type { Balancer, Release, SharedWork } from "../core/index.ts";
import type { Replicating, Replication } from "./simulation-options.ts";

/**
 * Every `intervalMs` each balancer tells all others what it has in flight and holds, and what it sent since; at short
 * intervals what changed of it. In between they know of one another what was said last.
 * @param delayMs From the moment at which it is said to the one at which it is known.
 */
export function exchangeWork(intervalMs: number, delayMs: number = 0): Replication {
  return { begin: (balancers) => new WorkExchanging(balancers, intervalMs, delayMs) };
}

/** A message on its way. */
interface Letter {
  readonly atMs: number;
  readonly from: number;
  readonly work: SharedWork;
}

class WorkExchanging implements Replicating {
  readonly #balancers: readonly Balancer[];
  readonly #intervalMs: number;
  readonly #delayMs: number;
  /** When each speaks next. */
  readonly #speaksAtMs: number[];
  readonly #wholeAtMs: number[];
  #letters: Letter[] = [];

  constructor(balancers: readonly Balancer[], intervalMs: number, delayMs: number) {
    this.#balancers = balancers;
    this.#intervalMs = intervalMs;
    this.#delayMs = delayMs;
    // Processes do not begin at one moment.
    this.#speaksAtMs = balancers.map((_, i) => (intervalMs * (i + 1)) / balancers.length);
    this.#wholeAtMs = balancers.map(() => 0);
  }

  get nextAtMs(): number {
    return Math.min(...this.#speaksAtMs, this.#letters[0]?.atMs ?? Number.POSITIVE_INFINITY);
  }

  move(nowMs: number): readonly Release[] {
    for (const [from, atMs] of this.#speaksAtMs.entries()) if (atMs <= nowMs) this.#speak(from, nowMs);
    const arrived = this.#letters.filter(({ atMs }) => atMs <= nowMs);
    this.#letters = this.#letters.slice(arrived.length);
    return arrived.flatMap(({ from, work }) =>
      this.#balancers.flatMap((balancer, to) =>
        from === to ? [] : balancer.adopt(`replica-${from + 1}`, work, nowMs),
      ),
    );
  }

  #speak(from: number, nowMs: number): void {
    const balancer = this.#balancers[from] as Balancer;
    const isWhole = this.#intervalMs > PROMPT_MS || nowMs >= (this.#wholeAtMs[from] as number);
    this.#speaksAtMs[from] = nowMs + this.#intervalMs;
    if (isWhole) this.#wholeAtMs[from] = nowMs + WHOLE_MS;
    const work = isWhole ? balancer.share(nowMs) : balancer.shareChanges(nowMs);
    if (work !== undefined) this.#letters.push({ atMs: nowMs + this.#delayMs, from, work });
  }
}

/** Who speaks this often tells each change as it comes; who speaks less often tells all that there is. */
const PROMPT_MS = 50;

/** As often as nodes of the product say all they know. */
const WHOLE_MS = 500;
