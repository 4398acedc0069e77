/** How fast requests come to an end, while there are any: so fast whoever waits moves up. */
export class DrainMeter {
  #inFlight = 0;
  /** Ends, and the time in which they came, both decaying. */
  #ends = 0;
  #busyMs = 0;
  #atMs = 0;

  /** A request is in flight from now on. */
  began(nowMs: number): void {
    this.#pass(nowMs);
    this.#inFlight++;
  }

  /** It is not any more. `isServed`: what made room was work that got done, or that nobody wants any more. */
  ended(isServed: boolean, nowMs: number): void {
    this.#pass(nowMs);
    this.#inFlight--;
    if (isServed) this.#ends++;
  }

  /** Requests a second; undefined: too few ended lately to say. */
  perSecond(nowMs: number): number | undefined {
    const { ends, busyMs } = this.#at(nowMs);
    return ends < MIN_ENDS || busyMs === 0 ? undefined : (1000 * ends) / busyMs;
  }

  #pass(nowMs: number): void {
    const { ends, busyMs } = this.#at(nowMs);
    this.#ends = ends;
    this.#busyMs = busyMs;
    this.#atMs = Math.max(this.#atMs, nowMs);
  }

  /** Time in which nothing is in flight says nothing. */
  #at(nowMs: number): { readonly ends: number; readonly busyMs: number } {
    const passedMs = this.#inFlight === 0 ? 0 : Math.max(0, nowMs - this.#atMs);
    const left = Math.exp(-passedMs / WINDOW_MS);
    return { ends: this.#ends * left, busyMs: this.#busyMs * left + WINDOW_MS * (1 - left) };
  }
}

/** Time constant: several answers of any length, and less than a change of traffic takes. */
const WINDOW_MS = 30_000;

/** What is left of one end after twenty seconds in which there was no other: it says little by then. */
const MIN_ENDS = 0.5;
