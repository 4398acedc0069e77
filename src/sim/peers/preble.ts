import { type Candidate, costOf, type Policy, type Prefix, type RequestProfile } from "../../core/index.ts";
import { type PeerPolicy, plainPeer } from "./peer-policy.ts";
import { OwnIndexes } from "./prefix-knowledge.ts";
import { allHighest, choiceOf, chooseLowest, lowest, weighEach } from "./weighed.ts";

const WINDOW_MS = 180_000;

/** An answer's length while nothing is known of it. */
const DECODE_TOKENS = 45;

/** An endpoint with more than this multiple of the lightest load is not exploited further. */
const REBALANCE_RATIO = 1.5;

/**
 * The E2 scheduler of Preble (arXiv 2407.00023): exploit, when more of the prompt is cached than not: the longest match,
 * the lightest of them; explore otherwise: the lowest sum of load of the last three minutes, cost of what would be
 * evicted and own prefill. An exploited endpoint that is overloaded gives way to the lightest. Its offline curves are
 * the endpoint's learned speed, so a mixed fleet needs no other scaling.
 */
export const prebleE2: PeerPolicy = plainPeer({
  name: "preble_e2",
  summary: "exploits what is mostly cached, else lowest load, eviction and prefill cost",
  score: "ms of load, eviction and prefill, lowest wins when exploring; exploiting follows the longest match",
  create: createE2,
});

function createE2(): Policy {
  const indexes = new OwnIndexes();
  const windows = new Map<string, LoadWindow>();
  /** The event that follows a choice carries no time: it is the choice's. */
  let chosenAtMs = 0;
  const windowOf = ({ endpoint }: Candidate): LoadWindow => {
    let window = windows.get(endpoint.id);
    if (window === undefined) {
      window = new LoadWindow();
      windows.set(endpoint.id, window);
    }
    return window;
  };
  return {
    routed(event) {
      const { request, chosen } = event;
      windowOf(chosen).add(request.prefix, chosenAtMs, requestMs(request, chosen, indexes));
      indexes.routed(event);
    },
    choose(request, candidates, { nowMs, random }) {
      chosenAtMs = nowMs;
      const weighed = weighEach(candidates, (candidate) => {
        const window = windowOf(candidate);
        window.expire(nowMs);
        const cachedTokens = indexes.cachedTokens(request, candidate);
        return {
          cachedTokens,
          loadMs: window.loadMs,
          evictionMs: evictionMs(request.promptTokens - cachedTokens, candidate, indexes, window),
          prefillMs: prefillMs(request, candidate, cachedTokens),
        };
      });
      const total = (ms: { loadMs: number; evictionMs: number; prefillMs: number }) =>
        ms.loadMs + ms.evictionMs + ms.prefillMs;
      const load = (ms: { loadMs: number }) => ms.loadMs;
      const holders = allHighest(weighed, ({ cachedTokens }) => cachedTokens);
      if (holders[0].figures.cachedTokens <= request.promptTokens / 2) {
        return chooseLowest(weighed, total, random, "explore: lowest cost");
      }
      const holder = lowest(holders, load, random);
      const lightest = lowest(weighed, load, random);
      return holder.figures.loadMs > REBALANCE_RATIO * lightest.figures.loadMs
        ? choiceOf(lightest, weighed, total, "exploit, but overloaded: the lightest")
        : choiceOf(holder, weighed, total, "exploit: longest match");
    },
  };
}

function prefillMs(request: RequestProfile, { speed }: Candidate, cachedTokens: number): number {
  const { prefillTokens, prefillPairs } = costOf(request, cachedTokens);
  return speed.prefillMs(prefillTokens, prefillPairs);
}

/** Time of the engine that the request takes: its prefill, and as many steps as an answer is believed to have. */
function requestMs(request: RequestProfile, candidate: Candidate, indexes: OwnIndexes): number {
  const { speed, account } = candidate;
  const stepMs = speed.decodeStepMs(account.runningRequests + 1, account.contextTokens + request.promptTokens);
  return prefillMs(request, candidate, indexes.cachedTokens(request, candidate)) + DECODE_TOKENS * stepMs;
}

/** Prefill of each block that `tokens` more would push out, times the share of recent requests that use it. */
function evictionMs(tokens: number, candidate: Candidate, indexes: OwnIndexes, window: LoadWindow): number {
  const index = indexes.of(candidate);
  let ms = 0;
  index.visitOldest(index.tokens + tokens - index.capacityTokens, (hash, blockTokens) => {
    ms += window.shareOf(hash) * candidate.speed.prefillMs(blockTokens, 0);
  });
  return ms;
}

interface Assigned {
  readonly atMs: number;
  readonly ms: number;
  readonly hashes: readonly number[];
}

/** What was sent to one endpoint in the last three minutes. */
class LoadWindow {
  loadMs = 0;
  #assigned: Assigned[] = [];
  /** So many at the head are out of the window. */
  #expired = 0;
  readonly #uses = new Map<number, number>();

  add(prefix: Prefix | undefined, atMs: number, ms: number): void {
    const hashes = prefix?.hashes ?? [];
    this.#assigned.push({ atMs, ms, hashes });
    this.loadMs += ms;
    for (const hash of hashes) this.#uses.set(hash, (this.#uses.get(hash) ?? 0) + 1);
  }

  expire(nowMs: number): void {
    for (;;) {
      const oldest = this.#assigned[this.#expired];
      if (oldest === undefined || oldest.atMs >= nowMs - WINDOW_MS) break;
      this.#drop(oldest);
      this.#expired++;
    }
    if (this.#expired > this.#assigned.length / 2) {
      this.#assigned = this.#assigned.slice(this.#expired);
      this.#expired = 0;
      // Sums of what came and went leave dust behind.
      if (this.#assigned.length === 0) this.loadMs = 0;
    }
  }

  /** Share of the requests that begin with the prompt up to this block, 0 to 1. */
  shareOf(hash: number): number {
    const requests = this.#assigned.length - this.#expired;
    return requests === 0 ? 0 : (this.#uses.get(hash) ?? 0) / requests;
  }

  #drop({ ms, hashes }: Assigned): void {
    this.loadMs -= ms;
    for (const hash of hashes) {
      const uses = this.#uses.get(hash) ?? 0;
      if (uses > 1) this.#uses.set(hash, uses - 1);
      else this.#uses.delete(hash);
    }
  }
}
