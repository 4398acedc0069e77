import { describe, expect, it } from "vitest";
import { costOf } from "./cost.ts";
import { decodeStepMs, PRIOR_COEFFICIENTS, prefillMs } from "./engine-coefficients.ts";
import { EngineSpeed } from "./engine-speed.ts";
import { type Lease, Ledger } from "./ledger.ts";
import { requestProfile } from "./request.ts";
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

  /** Anything that moves later on the endpoint shows that a batch is complete. */
  settle(nowMs: number): void {
    this.observer.prefilled(this.open(1, nowMs), nowMs);
  }
}

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
});
