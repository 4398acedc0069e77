import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Deadline, Watchdog, Watched } from "./watchdog.ts";

class Recorder extends Watched {
  readonly #name: string;
  readonly #log: string[];

  constructor(name: string, log: string[], deadlineMs: number) {
    super();
    this.#name = name;
    this.#log = log;
    this.deadlineMs = deadlineMs;
  }

  expired(): void {
    this.#log.push(this.#name);
  }
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("Watchdog", () => {
  let nowMs = 0;
  let log: string[] = [];
  let watchdog = new Watchdog({ nowMs: () => nowMs });

  beforeEach(() => {
    nowMs = 0;
    log = [];
    watchdog = new Watchdog({ nowMs: () => nowMs });
  });
  afterEach(() => watchdog.close());

  const watched = (name: string, deadlineMs: number): Recorder => {
    const recorder = new Recorder(name, log, deadlineMs);
    watchdog.watch(recorder);
    return recorder;
  };
  const passTo = (ms: number): void => {
    nowMs = ms;
    vi.advanceTimersByTime(200);
  };

  it("tells of each deadline that has passed, once", () => {
    watched("a", 1_000);
    watched("b", 2_000);
    passTo(999);
    expect(log).toEqual([]);
    passTo(1_500);
    expect(log).toEqual(["a"]);
    passTo(9_000);
    passTo(9_900);
    expect(log).toEqual(["a", "b"]);
  });

  it("goes by where a deadline has been moved to, at infinity never", () => {
    const a = watched("a", 1_000);
    a.deadlineMs = 3_000;
    const b = watched("b", 1_000);
    b.deadlineMs = Number.POSITIVE_INFINITY;
    passTo(2_000);
    expect(log).toEqual([]);
    passTo(3_000);
    expect(log).toEqual(["a"]);
  });

  it("forgets what is unwatched, in any order and more than once", () => {
    const all = ["a", "b", "c", "d"].map((name) => watched(name, 1_000));
    for (const i of [1, 1, 3, 0]) watchdog.unwatch(all[i] as Recorder);
    passTo(2_000);
    expect(log).toEqual(["c"]);
  });

  it("leaves out what another's end unwatched", () => {
    const b = watched("b", 1_000);
    class Ender extends Recorder {
      override expired(): void {
        super.expired();
        watchdog.unwatch(b);
      }
    }
    watchdog.unwatch(b);
    watchdog.watch(new Ender("a", log, 1_000));
    watchdog.watch(b);
    passTo(2_000);
    expect(log).toEqual(["a"]);
  });

  it("asks each at every sweep whether it is over, its deadline aside", () => {
    let isOver = false;
    class Asked extends Recorder {
      override isDue(ms: number): boolean {
        return isOver || super.isDue(ms);
      }
    }
    watchdog.watch(new Asked("a", log, 9_000));
    passTo(1_000);
    expect(log).toEqual([]);
    isOver = true;
    passTo(1_200);
    passTo(1_400);
    expect(log).toEqual(["a"]);
  });

  it("can be told of an end after it was closed", () => {
    const a = watched("a", 1_000);
    watched("b", 1_000);
    watchdog.close();
    watchdog.unwatch(a);
    passTo(5_000);
    expect(log).toEqual([]);
  });
});

describe("Deadline", () => {
  it("comes once for each time it was set, unless it is lifted or set anew before", () => {
    let nowMs = 0;
    let comings = 0;
    const watchdog = new Watchdog({ nowMs: () => nowMs });
    const deadline = new Deadline(watchdog, () => comings++);
    const passTo = (ms: number): number => {
      nowMs = ms;
      vi.advanceTimersByTime(200);
      return comings;
    };
    deadline.lift();
    deadline.set(1_000);
    deadline.set(2_000);
    expect(passTo(1_500)).toBe(0);
    expect(passTo(2_000)).toBe(1);
    expect(passTo(3_000)).toBe(1);
    deadline.set(4_000);
    deadline.lift();
    expect(passTo(5_000)).toBe(1);
    deadline.set(6_000);
    expect(passTo(6_000)).toBe(2);
    watchdog.close();
  });
});
