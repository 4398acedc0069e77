import {
  type Account,
  type Candidate,
  type EngineSignals,
  EngineSpeed,
  endpoint,
  type HeldPrefill,
  type RequestProfile,
  SpeedPool,
} from "../../src/core/index.ts";
import { engineSignals } from "./engine-signals.ts";

/** What a test says of a candidate; what it leaves out is idle, empty and unknown. */
export interface CandidateFacts {
  readonly id: string;
  readonly account?: Partial<Account>;
  readonly signals?: Partial<EngineSignals>;
  readonly kvTokens?: number;
  readonly kvCapacityTokens?: number;
  /** Prefill that is held for it and goes before any request. */
  readonly heldAhead?: HeldPrefill;
  /** Prompt tokens the balancer's mirror says are cached, of any request. */
  readonly cachedTokens?: number;
}

/** A candidate by its figures alone, without a pool and a ledger behind it. */
export function candidate(facts: CandidateFacts): Candidate {
  const { id, account, signals, kvTokens = 0, kvCapacityTokens, heldAhead = NOTHING, cachedTokens = 0 } = facts;
  const speed = new EngineSpeed(new SpeedPool(), undefined);
  return {
    endpoint: endpoint({ id }),
    account: { ...IDLE, ...account },
    speed,
    coefficients: speed.coefficients,
    signals: signals && engineSignals(signals),
    kvTokens,
    kvCapacityTokens,
    evictableKvTokens: 0,
    held: { requests: heldAhead === NOTHING ? 0 : 1, aheadOf: () => heldAhead, countBehind: () => 0 },
    cachedTokens: ({ promptTokens }: RequestProfile) => Math.min(cachedTokens, promptTokens - 1),
    visitEvicted: () => undefined,
  };
}

/** Candidates by their figures, in the order given. */
export function candidatesOf(
  first: CandidateFacts,
  ...rest: readonly CandidateFacts[]
): readonly [Candidate, ...Candidate[]] {
  return [candidate(first), ...rest.map(candidate)];
}

const NOTHING: HeldPrefill = { prefillTokens: 0, prefillPairs: 0 };

const IDLE: Account = {
  requests: 0,
  waitingRequests: 0,
  waitingPrefillTokens: 0,
  waitingPrefillPairs: 0,
  othersPrefillTokens: 0,
  othersPrefillPairs: 0,
  untoldPrefillTokens: 0,
  untoldPrefillPairs: 0,
  waitingPromptTokens: 0,
  runningRequests: 0,
  contextTokens: 0,
  outputTokens: 0,
  prefillSinceMs: 0,
  oldestWaiting: undefined,
  recentPrefillMs: () => 0,
  own: () => ({ ...IDLE, recentPrefillTokens: 0, recentPrefillPairs: 0, prefillMovedAgoMs: undefined }),
};
