/**
 * CPU per decision: `decide`, with choosing and opening the lease, and the `finish` that closes it, for each policy by
 * size of pool and length of prompt. Run with `npx tsx bench/decide.bench.ts`; `--json` prints one JSON object instead
 * of the tables.
 */

import {
  type Balancer,
  createBalancer,
  endpoint,
  type Lease,
  type Prefix,
  PrefixHasher,
  policyDefinitions,
  type RequestProfile,
  requestProfile,
  seededRandom,
} from "../src/core/index.ts";

const POOL_SIZES = [8, 100, 200, 1000];
const PROMPTS = [
  { name: "1 kB", bytes: 1_000 },
  { name: "400 kB", bytes: 400_000 },
];
/** Prompts that come again and again, as the turns of so many conversations do. */
const CONVERSATIONS = 64;
/** Requests in flight at each endpoint, most of them past their first token. */
const IN_FLIGHT = 8;
/** The best of some rounds: what else the machine does can only slow a round down. */
const ROUNDS = 5;
const ROUND_MS = 50;

/** Every request is to be sent at once, so that each decision has a lease to close, however much is in flight. */
const POLICY_OPTIONS: Readonly<Record<string, object>> = {
  token_aware: { horizonSeconds: 3600 },
  least_delay: { lateBinding: false },
};

const random = seededRandom(1);

function textOf(bytes: number): string {
  const words = ["the ", "balancer ", "sends ", "each ", "request ", "where ", "it ", "waits ", "least ", "and "];
  // Flat, as JSON.parse makes it: joined pieces are read more slowly.
  return Buffer.from(
    Array.from({ length: bytes }, () => words[Math.floor(random.next() * words.length)]).join(""),
  ).toString("latin1", 0, bytes);
}

function hash(text: string): Prefix | undefined {
  const hasher = new PrefixHasher(["model"]);
  hasher.update(text);
  return hasher.finish(text.length / 4);
}

function requests(bytes: number): RequestProfile[] {
  return Array.from({ length: CONVERSATIONS }, (_, i) =>
    requestProfile({
      promptTokens: Math.ceil(bytes / 4),
      prefix: hash(textOf(bytes)),
      sessionKey: `session-${i}`,
      model: "model",
    }),
  );
}

function busyBalancer(policy: string, size: number, asked: readonly RequestProfile[]): Balancer {
  const policyOptions = POLICY_OPTIONS[policy] ?? {};
  const endpoints = Array.from({ length: size }, (_, i) =>
    endpoint({ id: `endpoint-${i}`, kvCapacityTokens: 467_000, tokensPerSecond: 1000 + i }),
  );
  const balancer = createBalancer({ policy, policyOptions, endpoints, random: seededRandom(2) });
  for (let i = 0; i < size * IN_FLIGHT; i++) {
    const decision = balancer.decide(asked[i % asked.length] as RequestProfile, i);
    if (decision.kind === "routed" && i % 8 > 0) balancer.firstToken(decision.lease, i + 0.5);
  }
  return balancer;
}

function usPerDecision(policy: string, size: number, asked: readonly RequestProfile[]): number {
  const balancer = busyBalancer(policy, size, asked);
  let best = Number.POSITIVE_INFINITY;
  let nowMs = 1e6;
  for (let round = 0; round < ROUNDS; round++) {
    let decisions = 0;
    const cpuBefore = process.cpuUsage();
    const endsAtMs = performance.now() + ROUND_MS;
    while (performance.now() < endsAtMs) {
      nowMs += 1;
      const lease = routed(balancer, asked[decisions % asked.length] as RequestProfile, nowMs);
      balancer.finish(lease, { kind: "completed", outputTokens: 100 }, nowMs);
      decisions++;
    }
    const { user, system } = process.cpuUsage(cpuBefore);
    best = Math.min(best, (user + system) / decisions);
  }
  return Number(best.toPrecision(3));
}

function routed(balancer: Balancer, request: RequestProfile, nowMs: number): Lease {
  const decision = balancer.decide(request, nowMs);
  if (decision.kind !== "routed") throw new Error(decision.kind);
  return decision.lease;
}

function usPerHash(bytes: number): number {
  const text = textOf(bytes);
  hash(text);
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 50; round++) {
    const startedMs = performance.now();
    hash(text);
    best = Math.min(best, 1000 * (performance.now() - startedMs));
  }
  return Number(best.toPrecision(3));
}

const rows = PROMPTS.flatMap(({ name: prompt, bytes }) => {
  const asked = requests(bytes);
  return policyDefinitions.map(({ name: policy }) => ({
    prompt,
    policy,
    ...Object.fromEntries(POOL_SIZES.map((size) => [`${size} endpoints`, usPerDecision(policy, size, asked)])),
  }));
});
const hashes = PROMPTS.map(({ name, bytes }) => ({ prompt: name, usPerHash: usPerHash(bytes) }));

if (process.argv.includes("--json")) console.log(JSON.stringify({ bench: "decide", unit: "us", rows, hashes }));
else {
  console.log("us per decision and finish");
  console.table(rows);
  console.table(hashes);
}
