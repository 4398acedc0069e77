import type { Balancer, Lease, Prefix, RequestProfile } from "../../src/core/index.ts";

/** The core's functions, from its source or as built. */
export type Core = typeof import("../../src/core/index.ts");

/** What is decided, over and over. */
export interface DecisionCase {
  /** Undefined: the default policy. */
  readonly policy?: string;
  readonly policyOptions?: object;
  readonly endpoints: number;
  /** Requests in flight at each endpoint, most of them past their first token. */
  readonly inFlight: number;
  /** Asked in turn. */
  readonly requests: readonly RequestProfile[];
}

/** Prompts that come again and again, as the turns of so many conversations do. */
const CONVERSATIONS = 64;

/** Of CPU. Enough for just-in-time compilers to settle. */
const WARM_UP_MS = 250;
const ROUND_MS = 50;

/** Requests with prompts of `bytes` of text each, as the gateway describes them. */
export function requestsOf(core: Core, bytes: number): RequestProfile[] {
  const random = core.seededRandom(1);
  return Array.from({ length: CONVERSATIONS }, (_, i) =>
    core.requestProfile({
      promptTokens: Math.ceil(bytes / 4),
      prefix: hashOf(
        core,
        textOf(bytes, () => random.next()),
      ),
      sessionKey: `session-${i}`,
      model: "model",
    }),
  );
}

/** `bytes` of ASCII words. */
export function textOf(bytes: number, random: () => number): string {
  const words = ["the ", "balancer ", "sends ", "each ", "request ", "where ", "it ", "waits ", "least ", "and "];
  // Flat, as JSON.parse makes it: joined pieces are read more slowly.
  return Buffer.from(Array.from({ length: bytes }, () => words[Math.floor(random() * words.length)]).join("")).toString(
    "latin1",
    0,
    bytes,
  );
}

export function hashOf(core: Core, text: string): Prefix | undefined {
  const hasher = new core.PrefixHasher(["model"]);
  hasher.update(text);
  return hasher.finish(text.length / 4);
}

/**
 * CPU per decision of one balancer: `decide`, with choosing and opening the lease, and the `finish` that closes it.
 * @returns what takes one sample more, in microseconds: samples of several loops are taken in turn.
 */
export function decisionLoop(core: Core, decisionCase: DecisionCase): () => number {
  const balancer = busyBalancer(core, decisionCase);
  const { requests } = decisionCase;
  let nowMs = 1e6;
  return warmLoop((i) => {
    nowMs += 1;
    const lease = routed(balancer, requests[i % requests.length] as RequestProfile, nowMs);
    balancer.finish(lease, { kind: "completed", outputTokens: 100 }, nowMs);
  });
}

/**
 * CPU of what every balancer does at least: the least of so many numbers, looked for among objects. What decisions are
 * a multiple of, on whatever machine. @returns what takes one sample more, in microseconds.
 */
export function baselineLoop(endpoints: number): () => number {
  const loads = Array.from({ length: endpoints }, (_, id) => ({ id, load: (id * 7919) % endpoints }));
  return warmLoop((i) => {
    let least = loads[0] as (typeof loads)[number];
    for (const candidate of loads) if (candidate.load < least.load) least = candidate;
    // The next one is another.
    least.load += 1 + (i % 3);
  });
}

function warmLoop(call: (i: number) => void): () => number {
  cpuUsEach(call, WARM_UP_MS);
  return () => cpuUsEach(call, ROUND_MS);
}

/** CPU time of this process per call, over so much of it at least. @returns microseconds. */
export function cpuUsEach(call: (i: number) => void, cpuMs: number): number {
  const before = process.cpuUsage();
  let calls = 0;
  let spentUs = 0;
  for (let block = 1; spentUs < cpuMs * 1000; ) {
    for (const end = calls + block; calls < end; calls++) call(calls);
    const { user, system } = process.cpuUsage(before);
    const blockUs = user + system - spentUs;
    spentUs += blockUs;
    // So long that looking at the clock is nothing beside it.
    if (blockUs < LEAST_BLOCK_US) block *= 2;
  }
  return spentUs / calls;
}

const LEAST_BLOCK_US = 500;

function busyBalancer(
  core: Core,
  { policy, policyOptions = {}, endpoints, inFlight, requests }: DecisionCase,
): Balancer {
  const members = Array.from({ length: endpoints }, (_, i) =>
    core.endpoint({ id: `endpoint-${i}`, kvCapacityTokens: 467_000, tokensPerSecond: 1000 + i }),
  );
  const random = core.seededRandom(2);
  const balancer = core.createBalancer({ ...(policy && { policy }), policyOptions, endpoints: members, random });
  for (let i = 0; i < endpoints * inFlight; i++) {
    const decision = balancer.decide(requests[i % requests.length] as RequestProfile, i);
    if (decision.kind === "routed" && i % 8 > 0) balancer.firstToken(decision.lease, i + 0.5);
  }
  return balancer;
}

function routed(balancer: Balancer, request: RequestProfile, nowMs: number): Lease {
  const decision = balancer.decide(request, nowMs);
  if (decision.kind !== "routed") throw new Error(`a request is to be sent, but was ${decision.kind}`);
  return decision.lease;
}
