import {
  type AccountShare,
  type CacheEvent,
  type Endpoint,
  type EndpointShare,
  endpoint,
  type Prefix,
  type Random,
  type RequestProfile,
  requestProfile,
  type SharedWork,
  type SpeedSample,
} from "../../src/core/index.ts";

const PRIORITIES = ["low", "normal", "normal", "high"] as const;

/** Any size and form; one in ten generates nothing. */
export function randomRequest(random: Random): RequestProfile {
  const kind = below(random, 10);
  return requestProfile({
    promptTokens: below(random, below(random, 50) === 0 ? 60_000 : 4000) + random.next(),
    expectedOutputTokens: kind === 0 ? 0 : below(random, 400),
    isStreaming: kind > 3,
    prefix: kind > 6 ? randomPrefix(random) : undefined,
    sessionKey: kind % 3 === 0 ? `session ${below(random, 50)}` : undefined,
    tenant: kind % 2 === 0 ? undefined : `tenant ${below(random, 5)}`,
    priority: PRIORITIES[below(random, PRIORITIES.length)] ?? "normal",
    patienceMs: below(random, 5) === 0 ? below(random, 30_000) : undefined,
  });
}

/** It may be drained by its weight, or be another server than the one of that id before, or take few requests at a time. */
export function randomEndpoint(random: Random, id: string): Endpoint {
  return endpoint({
    id,
    url: `http://${id}/${below(random, 8) === 0 ? 1 : 0}`,
    weight: below(random, 6) === 0 ? 0 : 1,
    maxRequests: below(random, 4) === 0 ? 1 + below(random, 40) : undefined,
  });
}

/** One of twenty conversations, as far as it has come. */
function randomPrefix(random: Random): Prefix {
  const head = below(random, 20) * 1000;
  return { hashes: Array.from({ length: 1 + below(random, 30) }, (_, depth) => head + depth), tokensPerBlock: 64 };
}

/** What another balancer in front of `ids` might tell: of some of them, in whole tokens as all balancers count. */
export function randomShare(random: Random, ids: readonly string[]): Omit<SharedWork, "sequence"> {
  const endpoints: Record<string, EndpointShare> = {};
  for (const id of ids) if (below(random, 4) > 0) endpoints[id] = randomEndpointShare(random);
  const cache = Array.from({ length: below(random, 4) }, () => randomCacheEvent(random, ids));
  return { isWhole: below(random, 4) === 0, isPrompt: below(random, 2) === 0, endpoints, cache };
}

function randomEndpointShare(random: Random): EndpointShare {
  const waitingRequests = below(random, 4);
  const runningRequests = below(random, 10);
  const account: AccountShare = {
    requests: waitingRequests + runningRequests,
    waitingRequests,
    waitingPrefillTokens: waitingRequests * below(random, 2000),
    waitingPrefillPairs: (waitingRequests * below(random, 2_000_000)) / 2,
    waitingPromptTokens: waitingRequests * below(random, 4000),
    runningRequests,
    contextTokens: runningRequests * below(random, 4000),
    outputTokens: (waitingRequests + runningRequests) * below(random, 200),
    recentPrefillTokens: below(random, 50_000),
    recentPrefillPairs: below(random, 5_000_000),
    prefillMovedAgoMs: below(random, 3000),
  };
  const heldRequests = below(random, 5) === 0 ? below(random, 6) : 0;
  const held = {
    requests: heldRequests,
    prefillTokens: heldRequests * below(random, 2000),
    prefillPairs: heldRequests * below(random, 1_000_000),
    ...(heldRequests === 0 ? {} : { first: { urgency: below(random, 3), keyAgoMs: below(random, 20_000) - 10_000 } }),
  };
  const done = { tokens: below(random, 1e6), pairs: below(random, 1e9), steps: below(random, 1e4) };
  const samples = Array.from({ length: below(random, 3) }, () => randomSample(random));
  return { account, held, done, samples };
}

function randomSample(random: Random): SpeedSample {
  const isDecode = below(random, 2) === 0;
  return {
    scale: isDecode ? "decode" : "prefill",
    work: {
      mainMs: 1 + below(random, 20),
      otherMs: isDecode ? [below(random, 10), below(random, 10)] : [below(random, 10)],
    },
    ms: 1 + below(random, 100),
    noise: 0.05 + random.next(),
  };
}

function randomCacheEvent(random: Random, ids: readonly string[]): CacheEvent {
  const request = below(random, 50);
  if (below(random, 2) === 0) {
    return { kind: "ended", request, generatedTokens: below(random, 300), isComputed: below(random, 4) > 0 };
  }
  const endpointId = ids[below(random, ids.length)] as string;
  return { kind: "sent", request, endpointId, prefix: randomPrefix(random), promptTokens: below(random, 4000) };
}

function below(random: Random, bound: number): number {
  return Math.floor(random.next() * bound);
}
