import { seededRandom } from "../../src/core/index.ts";
import type { EndpointSample, RequestRecord, SimulationResult } from "../../src/sim/index.ts";

/** What the made-up results look like; no simulation runs. */
export interface SampleShape {
  readonly policy: string;
  readonly requests: number;
  readonly endpoints: number;
  /** Multiplies latencies and queues; 1: unhurried. */
  readonly slowness: number;
  /** Held at the balancer before it is sent. */
  readonly holds: boolean;
}

/** Plausible records of a run: log-normal latencies, a load that swells and ebbs, a few refused and unfinished. */
export function sampleResult({ policy, requests, endpoints, slowness, holds }: SampleShape): SimulationResult {
  const random = seededRandom(policy.length * 1000 + requests);
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
  const ids = Array.from({ length: endpoints }, (_, index) => `engine-${index + 1}`);
  const spanMs = 600_000;
  const record = (index: number): RequestRecord => {
    const arrivedAtMs = (index / requests) * spanMs;
    const swell = 1 + 1.5 * slowness * Math.sin((Math.PI * arrivedAtMs) / spanMs) ** 4;
    const promptTokens = Math.ceil(900 * Math.exp(0.9 * normal()));
    const outputTokens = 1 + Math.floor(180 * Math.exp(0.7 * normal()));
    const base = { arrivedAtMs, promptTokens, outputTokens, tenant: undefined };
    const fate = random.next();
    const none = { sentAtMs: undefined, firstTokenAtMs: undefined, endedAtMs: undefined, endpoint: undefined };
    if (fate < 0.004 * slowness) return { ...base, ...none, cachedTokens: 0 };
    const sentAtMs = arrivedAtMs + (holds && random.next() < 0.2 * swell ? 400 * swell * random.next() : 0);
    const firstTokenAtMs = sentAtMs + 70 * slowness * swell * Math.exp(0.9 * normal());
    const stepMs = 14 * swell ** 0.5 * Math.exp(0.25 * normal());
    return {
      ...base,
      sentAtMs,
      firstTokenAtMs,
      endedAtMs: fate < 0.008 * slowness ? undefined : firstTokenAtMs + stepMs * (outputTokens - 1),
      cachedTokens: Math.floor((promptTokens * random.next() ** 0.8) / slowness),
      endpoint: ids[Math.floor(random.next() ** (0.9 + 0.15 * slowness) * endpoints)] as string,
    };
  };
  const atMs = Array.from({ length: 601 }, (_, second) => second * 1000);
  const sampleOf = (at: number, index: number): EndpointSample => {
    const swell = Math.sin((Math.PI * at) / spanMs) ** 4;
    const skew = 1 + 0.12 * slowness * Math.sin(index * 2.3 + at / 60_000);
    return {
      running: Math.max(0, Math.round((12 + 30 * swell) * skew + 2 * normal())),
      waiting: Math.max(0, Math.round(swell * (slowness - 0.8) * 9 * skew + normal())),
      held: holds ? Math.max(0, Math.round(swell * 4 * skew + normal())) : 0,
      kvUsedRatio: Math.min(1, Math.max(0, (0.2 + 0.7 * swell) * skew + 0.02 * normal())),
    };
  };
  return {
    policy,
    workload: "azure-2023-conv.csv x2",
    fleet: `${endpoints}*llama8b-h100`,
    seed: 1,
    requests: Array.from({ length: requests }, (_, index) => record(index)),
    timeline: {
      atMs,
      endpoints: Object.fromEntries(ids.map((id, index) => [id, atMs.map((at) => sampleOf(at, index))])),
    },
    preemptions: Math.round(40 * (slowness - 1)),
    wallMs: 240,
  };
}
