import { describe, expect, it } from "vitest";
import { costOf } from "./cost.ts";
import { decodeStepMs, PRIOR_COEFFICIENTS, prefillMs } from "./engine-coefficients.ts";
import { EngineSpeed } from "./engine-speed.ts";
import { type Lease, Ledger } from "./ledger.ts";
import { requestProfile } from "./request.ts";
import type { AccountShare } from "./shared-work.ts";
import { SpeedObserver } from "./speed-observer.ts";
import { SpeedPool } from "./speed-pool.ts";

/** An endpoint whose requests a test moves by hand. */
class Bench {
  readonly #ledger = new Ledger();
  readonly account = this.#ledger.account("a");
  readonly speed = new EngineSpeed(new SpeedPool(), undefined);
  readonly observer = new SpeedObserver(this.account, this.speed);

  open(promptTokens: number, nowMs: number): Lease {
    const request = requestProfile({ promptTokens });
    return this.#ledger.open("a", costOf(request, 0), request.output, nowMs);
  }

  firstToken(lease: Lease, nowMs: number): void {
    this.observer.prefilled(lease, nowMs);
    lease.firstToken(nowMs);
  }

  /** A running request with next to no prompt. */
  running(nowMs = 0): Lease {
    const lease = this.open(1, nowMs);
    lease.firstToken(nowMs);
    return lease;
  }

  /** Another balancer says that this much prefill of its own waits there. */
  tellWaiting(tokens: number, nowMs: number): void {
    this.#ledger.adopt("a", "other", { ...NOTHING_IN_FLIGHT, waitingPrefillTokens: tokens }, false, nowMs);
  }

  /** Anything that moves later on the endpoint shows that a batch is complete. */
  settle(nowMs: number): void {
    this.observer.prefilled(this.open(1, nowMs), nowMs);
  }
}

const NOTHING_IN_FLIGHT: AccountShare = {
  requests: 0,
  waitingRequests: 0,
  waitingPrefillTokens: 0,
  waitingPrefillPairs: 0,
  waitingPromptTokens: 0,
  runningRequests: 0,
  contextTokens: 0,
  outputTokens: 0,
  recentPrefillTokens: 0,
  recentPrefillPairs: 0,
  prefillMovedAgoMs: 0,
};

const ownMs = (tokens: number): number => prefillMs(PRIOR_COEFFICIENTS, tokens, tokens ** 2 / 2);
const BARE_STEP_MS = decodeStepMs(PRIOR_COEFFICIENTS, 0, 0);
/** Time of a prompt alone on an idle engine `scale` times slower than the prior. */
const aloneMs = (tokens: number, scale: number): number =>
  scale * (ownMs(tokens) + BARE_STEP_MS - PRIOR_COEFFICIENTS.weightsMs);

describe("prefill", () => {
  it("is timed from the request's arrival at an idle endpoint", () => {
    const bench = new Bench();
    bench.firstToken(bench.open(2000, 1000), 1000 + aloneMs(2000, 3));
    bench.settle(5000);
    // Decoding is still believed to be the prior's, so the step beside it is counted at that.
    expect(bench.speed.prefillScale).toBeCloseTo(3 + (2 * PRIOR_COEFFICIENTS.stepMs) / ownMs(2000), 2);
  });

  it("is timed from the last first token where requests queue", () => {
    const bench = new Bench();
    const [first, second] = [bench.open(2000, 0), bench.open(2000, 1)] as const;
    bench.firstToken(first, aloneMs(2000, 1));
    const sharedStepMs = decodeStepMs(PRIOR_COEFFICIENTS, 1, 2001) - PRIOR_COEFFICIENTS.weightsMs;
    bench.firstToken(second, aloneMs(2000, 1) + ownMs(2000) + sharedStepMs);
    bench.settle(5000);
    expect(bench.speed.samples).toBe(2);
    expect(bench.speed.prefillScale).toBeCloseTo(1, 2);
  });

  it("is timed together where prompts shared an iteration: the first would look slow, the rest instant", () => {
    const bench = new Bench();
    const leases = [bench.open(1000, 0), bench.open(1000, 0), bench.open(1000, 0)];
    const pairs = 3 * (1000 ** 2 / 2);
    const tookMs = 2 * prefillMs(PRIOR_COEFFICIENTS, 3000, pairs) + BARE_STEP_MS - PRIOR_COEFFICIENTS.weightsMs;
    for (const [i, lease] of leases.entries()) bench.firstToken(lease, tookMs + i / 10);
    bench.settle(5000);
    expect(bench.speed.samples).toBe(1);
    expect(bench.speed.prefillScale).toBeCloseTo(2, 1);
  });

  it("is timed together where the first tokens of a long iteration are some steps of a fast engine apart", () => {
    const bench = new Bench();
    const leases = Array.from({ length: 8 }, () => bench.open(1000, 0));
    const tookMs = 10 * prefillMs(PRIOR_COEFFICIENTS, 8000, 8 * (1000 ** 2 / 2));
    for (const [i, lease] of leases.entries()) bench.firstToken(lease, tookMs + (i < 3 ? 0 : 20));
    bench.settle(10_000);
    expect(bench.speed.samples).toBe(1);
    expect(bench.speed.prefillScale).toBeCloseTo(10, 0);
  });

  it("is timed apart where a second iteration followed the first", () => {
    const bench = new Bench();
    const leases = Array.from({ length: 4 }, () => bench.open(8000, 0));
    for (const [i, lease] of leases.entries()) bench.firstToken(lease, (i + 1) * 400);
    bench.settle(10_000);
    expect(bench.speed.samples).toBe(4);
  });

  it("allows for half of the step that was under way", () => {
    const bench = new Bench();
    bench.running();
    const stepMs = decodeStepMs(PRIOR_COEFFICIENTS, 1, 2);
    const lease = bench.open(2000, 100);
    bench.firstToken(lease, 100 + stepMs / 2 + ownMs(2000) + stepMs - PRIOR_COEFFICIENTS.weightsMs);
    bench.settle(5000);
    expect(bench.speed.prefillScale).toBeCloseTo(1, 6);
  });

  it("is not learned from a wait that ended when a place became free", () => {
    const bench = new Bench();
    const running = bench.running();
    const lease = bench.open(2000, 10);
    running.close(3000);
    bench.observer.placeFreed(3000);
    bench.firstToken(lease, 3050);
    bench.settle(5000);
    expect(bench.speed.samples).toBe(0);
  });

  it("is not learned while another balancer's prefill may be under way too", () => {
    const bench = new Bench();
    bench.tellWaiting(8000, 0);
    bench.firstToken(bench.open(2000, 10), 250);
    bench.tellWaiting(0, 251);
    bench.settle(5000);
    expect(bench.speed.samples).toBe(0);
    bench.firstToken(bench.open(2000, 6000), 6000 + aloneMs(2000, 1));
    bench.settle(9000);
    expect(bench.speed.samples).toBe(1);
  });

  it("is not learned from a batch of which any prompt may have waited for another balancer's", () => {
    const bench = new Bench();
    const leases = [bench.open(2000, 0), bench.open(2000, 0)] as const;
    bench.tellWaiting(8000, 10);
    bench.firstToken(leases[0], 250);
    bench.tellWaiting(0, 251);
    bench.firstToken(leases[1], 252);
    bench.settle(5000);
    expect(bench.speed.samples).toBe(0);
  });

  it("is told to others as far as it is done, together or unseen", () => {
    const bench = new Bench();
    expect(bench.observer.ownDone()).toEqual({ tokens: 0, pairs: 0, steps: 0 });
    const leases = [bench.open(1000, 0), bench.open(1000, 0), bench.open(2000, 0)] as const;
    bench.firstToken(leases[0], 40);
    bench.firstToken(leases[1], 40);
    expect(bench.observer.ownDone()).toEqual({ tokens: 2000, pairs: 2 * (1000 ** 2 / 2), steps: 1 });
    bench.observer.prefillDone(leases[2].cost);
    expect(bench.observer.ownDone()).toEqual({ tokens: 4000, pairs: 1000 ** 2 + 2000 ** 2 / 2, steps: 2 });
    bench.observer.adopt("other", { tokens: 0, pairs: 0, steps: 0 });
    bench.observer.adopt("other", { tokens: 500, pairs: 0, steps: 1 });
    expect(bench.observer.ownDone().tokens).toBe(4000);
  });
});

describe("decoding", () => {
  const STEP_MS = decodeStepMs(PRIOR_COEFFICIENTS, 1, 2);

  it("is learned by the stretch, not by the gap: bursts say nothing of an engine", () => {
    const bench = new Bench();
    bench.running();
    const timer = bench.observer.decoding(0);
    // Ten steps' tokens arrive together, half a millisecond apart.
    for (let burst = 1; burst <= 20; burst++) {
      for (let i = 0; i < 10; i++) bench.observer.decoded(timer, 1, burst * 10 * 5 * STEP_MS + i / 2);
    }
    expect(bench.speed.samples).toBeGreaterThan(3);
    expect(Math.abs(Math.log(bench.speed.decodeScale / 5))).toBeLessThan(0.1);
  });

  it("counts each token of a chunk that carries several", () => {
    const bench = new Bench();
    bench.running();
    const timer = bench.observer.decoding(0);
    for (let chunk = 1; chunk <= 100; chunk++) bench.observer.decoded(timer, 4, chunk * 4 * 2 * STEP_MS);
    expect(bench.speed.decodeScale).toBeCloseTo(2, 6);
  });

  it("does not close a stretch while somebody waits, and leaves out the prefill it held", () => {
    const bench = new Bench();
    bench.running();
    const timer = bench.observer.decoding(0);
    const newcomer = bench.open(2000, 1);
    for (let i = 1; i <= 40; i++) bench.observer.decoded(timer, 1, i * STEP_MS);
    expect(bench.speed.samples).toBe(0);
    const nowMs = 40 * STEP_MS + ownMs(2000) - PRIOR_COEFFICIENTS.weightsMs;
    bench.firstToken(newcomer, nowMs);
    bench.observer.decoded(timer, 1, nowMs);
    expect(bench.speed.decodeScale).toBeCloseTo(1, 1);
  });

  it("uses what a short answer has, up to its last token, and not less than eight of them", () => {
    const bench = new Bench();
    bench.running();
    const seven = bench.observer.decoding(0);
    bench.observer.decoded(seven, 7, 7 * STEP_MS);
    bench.observer.decodingEnded(seven);
    expect(bench.speed.samples).toBe(0);
    const eight = bench.observer.decoding(0);
    bench.observer.decoded(eight, 8, 8 * 3 * STEP_MS);
    bench.observer.decodingEnded(eight);
    expect(bench.speed.decodeScale).toBeCloseTo(3, 6);
  });

  it("is learned from a whole answer whose tokens were not seen, its own prefill included", () => {
    const bench = new Bench();
    const lease = bench.open(2000, 0);
    const timer = bench.observer.decoding(0);
    lease.firstToken(50);
    bench.observer.prefillDone(lease.cost);
    bench.observer.add(timer, 60);
    const wholeMs = 100 * decodeStepMs(PRIOR_COEFFICIENTS, 1, 2001) + ownMs(2000) - PRIOR_COEFFICIENTS.weightsMs;
    bench.observer.decodedUnseen(timer, 100, 4 * wholeMs);
    expect(bench.speed.decodeScale).toBeCloseTo(4, 6);
  });

  it("takes the endpoint as it is at the end of a whole answer when nothing was projected", () => {
    const bench = new Bench();
    bench.running();
    bench.observer.decodedUnseen(bench.observer.decoding(0), 100, 100 * 2 * STEP_MS);
    expect(bench.speed.decodeScale).toBeCloseTo(2, 6);
    bench.observer.decodedUnseen(bench.observer.decoding(0), 7, 7 * 9 * STEP_MS);
    expect(bench.speed.samples).toBe(1);
  });

  describe("beside what other balancers told", () => {
    /** What `observe` is to be told of 41 tokens: the time they take, and that of a prompt of 2,000 tokens beside them. */
    const wholeMs = 40 * STEP_MS + ownMs(2000) - PRIOR_COEFFICIENTS.weightsMs;
    const told = (tokens: number) => ({ tokens, pairs: tokens ** 2 / 2, steps: tokens === 0 ? 0 : 1 });

    /** How slow decoding looks in that time after `tell` told what others did. */
    function decodeScale(
      tell: (observer: SpeedObserver) => void,
      before: (observer: SpeedObserver) => void = () => {},
    ) {
      const bench = new Bench();
      bench.running();
      before(bench.observer);
      const timer = bench.observer.decoding(0);
      bench.observer.add(timer, 40);
      tell(bench.observer);
      bench.observer.decoded(timer, 1, wholeMs);
      expect(bench.speed.samples).toBe(1);
      return bench.speed.decodeScale;
    }

    const unknownScale = decodeScale(() => undefined);
    const onceScale = decodeScale(
      (observer) => observer.adopt("other", told(2000)),
      (observer) => observer.adopt("other", told(0)),
    );

    it("leaves out the prefill that was done for them meanwhile", () => {
      expect(onceScale).toBeCloseTo(1, 1);
      expect(unknownScale).toBeGreaterThan(1.1);
    });

    it("adds up what several say, and over several messages", () => {
      const meet = (observer: SpeedObserver) => {
        observer.adopt("other", { tokens: 7000, pairs: 100, steps: 3 });
        observer.adopt("third", { tokens: 0, pairs: 0, steps: 0 });
      };
      const scale = decodeScale((observer) => {
        observer.adopt("other", { tokens: 7500, pairs: 500_100, steps: 3 });
        observer.adopt("third", { tokens: 1000, pairs: 500_000, steps: 1 });
        observer.adopt("other", { tokens: 8000, pairs: 1_000_100, steps: 3 });
        observer.adopt("third", { tokens: 1000, pairs: 1_000_000, steps: 1 });
      }, meet);
      expect(scale).toBe(onceScale);
    });

    it("leaves out nothing that was done before the stretch began", () => {
      const scale = decodeScale(
        () => undefined,
        (observer) => {
          observer.adopt("other", told(0));
          observer.adopt("other", told(2000));
        },
      );
      expect(scale).toBe(unknownScale);
      const twice = decodeScale(
        (observer) => observer.adopt("other", { tokens: 4000, pairs: 4_000_000, steps: 2 }),
        (observer) => {
          observer.adopt("other", told(0));
          observer.adopt("other", told(2000));
        },
      );
      expect(twice).toBe(onceScale);
    });

    it("leaves out nothing of what one did before it was met, or met again", () => {
      expect(decodeScale((observer) => observer.adopt("other", told(2000)))).toBe(unknownScale);
      const leave = (observer: SpeedObserver) => {
        observer.adopt("other", told(0));
        observer.adopt("other", undefined);
      };
      expect(decodeScale((observer) => observer.adopt("other", told(2000)), leave)).toBe(unknownScale);
      expect(decodeScale((observer) => observer.adopt("other", undefined), leave)).toBe(unknownScale);
    });

    it("keeps what one that is gone had done meanwhile", () => {
      const meet = (observer: SpeedObserver) => observer.adopt("other", told(0));
      const scale = decodeScale((observer) => {
        observer.adopt("other", told(2000));
        observer.adopt("other", undefined);
      }, meet);
      expect(scale).toBeCloseTo(1, 1);
    });
  });
});
