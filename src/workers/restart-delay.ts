/** How long a worker's place stays empty: the longer, the more often those that had it died young. */
export class RestartDelay {
  #youngDeaths = 0;

  /** One died that lived for so long. @returns when the next one begins. */
  nextMs(livedMs: number): number {
    this.#youngDeaths = livedMs < STEADY_MS ? this.#youngDeaths + 1 : 1;
    return Math.min(MAX_MS, FIRST_MS * 2 ** (this.#youngDeaths - 1));
  }
}

/** Who lived for so long did not die of how it began. */
const STEADY_MS = 60_000;
/** Less than a client takes to try again; the others serve meanwhile. */
const FIRST_MS = 100;
/** A machine that starts a process every 10 s in vain has enough left for those that live. */
const MAX_MS = 10_000;
