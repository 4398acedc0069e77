import { pathToFileURL } from "node:url";
import {
  type Balancer,
  createBalancer,
  type Endpoint,
  endpoint,
  type RequestProfile,
  type Routed,
  requestProfile,
  seededRandom,
} from "../src/core/index.ts";

/** Load and capacity of one endpoint of the first demonstration. */
interface Loaded {
  readonly id: string;
  readonly load: number;
  readonly capacity: number;
}

/** What the demonstrations show; `--json` prints exactly this. */
export interface Handbook {
  readonly distribution: {
    readonly requests: number;
    readonly endpoints: readonly Loaded[];
    /** Requests per endpoint, in the order of `endpoints`. */
    readonly roundRobin: readonly number[];
    readonly leastConnections: readonly number[];
    readonly weightedRandom: readonly number[];
  };
  readonly tokenAware: {
    readonly endpoints: readonly TokenLoad[];
    readonly decisions: readonly TokenDecision[];
  };
  readonly sessions: {
    readonly endpoints: readonly string[];
    readonly routes: readonly { readonly session: string; readonly endpoint: string }[];
  };
}

/** One endpoint of the token-aware demonstration. */
interface TokenLoad {
  readonly id: string;
  readonly prefillTokens: number;
  readonly decodeTokens: number;
  readonly tokensPerSecond: number;
  readonly loadPercent: number;
}

/** One request of that demonstration, and the load it would make on each endpoint. */
interface TokenDecision {
  readonly prefillTokens: number;
  readonly decodeTokens: number;
  readonly loadAfterPercent: Readonly<Record<string, number>>;
  readonly endpoint: string;
}

const REQUESTS = 1000;

const LOADED: readonly Loaded[] = [
  { id: "gpu-0", load: 30, capacity: 100 },
  { id: "gpu-1", load: 70, capacity: 100 },
  { id: "gpu-2", load: 50, capacity: 150 },
];

const SEED = 1;

/** One unit of load: a request in flight, and one work token (ten prompt tokens at 0.1, no output). */
const UNIT = requestProfile({ promptTokens: 10, expectedOutputTokens: 0 });

/** Runs all demonstrations through the product's own balancer. */
export function handbook(): Handbook {
  return { distribution: distribution(), tokenAware: tokenAware(), sessions: sessions() };
}

function distribution(): Handbook["distribution"] {
  return {
    requests: REQUESTS,
    endpoints: LOADED,
    roundRobin: shares("round_robin", {}),
    leastConnections: shares("least_connections", {}),
    weightedRandom: shares("weighted_random", { horizonSeconds: 1 }),
  };
}

/** Where 1000 requests go while the loads stay as they are: each ends before the next comes. */
function shares(policy: string, policyOptions: unknown): readonly number[] {
  const endpoints = LOADED.map(({ id, capacity }) => endpoint({ id, tokensPerSecond: capacity }));
  const balancer = createBalancer({ policy, policyOptions, endpoints, random: seededRandom(SEED) });
  for (const { id, load } of LOADED) for (let i = 0; i < load; i++) pin(balancer, endpoints, id, UNIT);
  // Round robin goes on from here with gpu-0, whose turn is longest ago: that one gets the odd request.
  const counts = new Map<string, number>();
  for (let i = 0; i < REQUESTS; i++) {
    const { endpoint, lease } = route(balancer, UNIT);
    counts.set(endpoint.id, (counts.get(endpoint.id) ?? 0) + 1);
    balancer.finish(lease, { kind: "aborted" }, 0);
  }
  return LOADED.map(({ id }) => counts.get(id) ?? 0);
}

/** Puts a request on `id`, whatever the policy thinks: all others count as tried. */
function pin(balancer: Balancer, endpoints: readonly Endpoint[], id: string, request: RequestProfile): void {
  const others = endpoints.map((other) => other.id).filter((other) => other !== id);
  route(balancer, request, others);
}

function route(balancer: Balancer, request: RequestProfile, tried: readonly string[] = []): Routed {
  const decision = balancer.decide(request, 0, tried);
  if (decision.kind !== "routed") throw new Error(decision.kind);
  return decision;
}

/** A saturated second of the token-aware rule: with a horizon of 1 s, load is work over tokens per second. */
const HORIZON_SECONDS = 1;

/** What the two endpoints have waiting: both are at 70 %, gpu-0 on four times the capacity. */
const WAITING = [
  { id: "gpu-0", tokensPerSecond: 4000, requests: 8 },
  { id: "gpu-1", tokensPerSecond: 1000, requests: 2 },
] as const;
const WAITING_REQUEST = { prefillTokens: 1000, decodeTokens: 250 };

/** A turn of a chat, a long document with a short answer, a short question with a long one. */
const ARRIVALS = [
  { prefillTokens: 200, decodeTokens: 80 },
  { prefillTokens: 1500, decodeTokens: 50 },
  { prefillTokens: 100, decodeTokens: 140 },
] as const;

function tokenAware(): Handbook["tokenAware"] {
  const endpoints = WAITING.map(({ id, tokensPerSecond }) => endpoint({ id, tokensPerSecond }));
  const policyOptions = { horizonSeconds: HORIZON_SECONDS };
  const balancer = createBalancer({ policy: "token_aware", policyOptions, endpoints, random: seededRandom(SEED) });
  for (const { id, requests } of WAITING) {
    for (let i = 0; i < requests; i++) pin(balancer, endpoints, id, profileOf(WAITING_REQUEST));
  }
  const loads = balancer.explain(UNIT, 0).explanation.considered;
  const before = WAITING.map(({ id, tokensPerSecond, requests }) => ({
    id,
    prefillTokens: requests * WAITING_REQUEST.prefillTokens,
    decodeTokens: requests * WAITING_REQUEST.decodeTokens,
    tokensPerSecond,
    loadPercent: percent(loads.find(({ endpoint }) => endpoint === id)?.terms?.load),
  }));
  return { endpoints: before, decisions: ARRIVALS.map((arrival) => decided(balancer, arrival)) };
}

function decided(balancer: Balancer, arrival: (typeof ARRIVALS)[number]): TokenDecision {
  const { endpoint, explanation } = route(balancer, profileOf(arrival));
  const loadAfterPercent = Object.fromEntries(
    explanation.considered.map((considered) => [considered.endpoint, percent(considered.score)]),
  );
  return { ...arrival, loadAfterPercent, endpoint: endpoint.id };
}

function profileOf({ prefillTokens, decodeTokens }: { prefillTokens: number; decodeTokens: number }): RequestProfile {
  return requestProfile({ promptTokens: prefillTokens, expectedOutputTokens: decodeTokens });
}

/** To a tenth of a percent. */
function percent(ratio = Number.NaN): number {
  return Math.round(ratio * 1000) / 10;
}

const SESSIONS = ["user-123-conv-456", "user-123-conv-456", "user-123-conv-456", "user-100", "user-200", "user-300"];

function sessions(): Handbook["sessions"] {
  const endpoints = LOADED.map(({ id }) => endpoint({ id }));
  const policyOptions = { hash: "modulo" };
  const balancer = createBalancer({ policy: "session_affinity", policyOptions, endpoints, random: seededRandom(SEED) });
  const routes = SESSIONS.map((session) => ({
    session,
    endpoint: route(balancer, requestProfile({ promptTokens: 100, sessionKey: session })).endpoint.id,
  }));
  return { endpoints: endpoints.map(({ id }) => id), routes };
}

/** The same as text, for reading along. */
export function handbookText({ distribution, tokenAware, sessions }: Handbook): string {
  const header = distribution.endpoints.map(({ id, load, capacity }) => `${id} (${load}/${capacity})`);
  return [
    `1. Where ${distribution.requests} requests go. In brackets: load/capacity, kept as they are.`,
    ...table([
      ["", ...header],
      ["round_robin", ...distribution.roundRobin.map(String)],
      ["least_connections", ...distribution.leastConnections.map(String)],
      ["weighted_random", ...distribution.weightedRandom.map(String)],
    ]),
    "   Round robin sees no load, least connections no capacity; free capacity is 70 : 30 : 100.",
    "",
    "2. token_aware: load = (0.1 x tokens waiting for prefill + 1.0 x tokens to decode) / tokens per second",
    ...table([
      ["", "to prefill", "to decode", "tokens/s", "load"],
      ...tokenAware.endpoints.map(({ id, prefillTokens, decodeTokens, tokensPerSecond, loadPercent }) => [
        id,
        ...[prefillTokens, decodeTokens, tokensPerSecond].map(String),
        `${loadPercent.toFixed(1)} %`,
      ]),
    ]),
    "   Three requests, one after the other, and the load each would make:",
    ...table([
      ["prompt + answer", ...tokenAware.endpoints.map(({ id }) => id), "goes to"],
      ...tokenAware.decisions.map(({ prefillTokens, decodeTokens, loadAfterPercent, endpoint }) => [
        `${prefillTokens} + ${decodeTokens}`,
        ...tokenAware.endpoints.map(({ id }) => `${loadAfterPercent[id]?.toFixed(1)} %`),
        endpoint,
      ]),
    ]),
    "   Equal loads do not make equal endpoints: the same request is a smaller part of the larger capacity,",
    "   so the load after adding it is lower there, all three times.",
    "",
    `3. session_affinity, hash: modulo: MD5 of the key, modulo ${sessions.endpoints.length} endpoints`,
    ...table([["session", "goes to"], ...sessions.routes.map(({ session, endpoint }) => [session, endpoint])]),
    "   The same key always goes to the same endpoint, as long as the list of endpoints stays the same.",
  ].join("\n");
}

/** Columns padded to their widest cell, indented. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) => `   ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("   ")}`.trimEnd());
}

function main(): void {
  const result = handbook();
  process.stdout.write(`${process.argv.includes("--json") ? JSON.stringify(result) : handbookText(result)}\n`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) main();
