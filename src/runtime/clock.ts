/** Monotonic time. Wall-clock steps cannot make a duration negative or a wait endless. */
export interface Clock {
  /** Milliseconds since an arbitrary start. */
  nowMs(): number;
}

export const monotonicClock: Clock = { nowMs: () => performance.now() };
