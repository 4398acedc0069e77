import { type Random, seededRandom } from "../../core/index.ts";
import type { Distribution } from "./distribution.ts";
import { arrivalTimes } from "./gaps.ts";
import { parseSyntheticSpec, type SyntheticSpec } from "./synthetic-spec.ts";
import type { Arrival, Workload, WorkloadRequest } from "./workload.ts";

/** As fine as a balancer's own blocks of text. */
const BLOCK_TOKENS = 64;

/**
 * Makes the workload of a specification such as `synthetic:rate=10,requests=2000,in=lognormal(800,1.2)`
 * (docs/traces.md). A turn's prompt is the system prompt, all turns and answers before, and what is new.
 * @throws WorkloadError that names every problem with what is allowed.
 */
export function syntheticWorkload(text: string): Workload {
  const spec = parseSyntheticSpec(text);
  const random = seededRandom(spec.seed);
  const sessionsPerMs = spec.rate / spec.turns / 1000;
  const starts = arrivalTimes(spec.arrivals, sessionsPerMs, 0, Number.POSITIVE_INFINITY, random);
  const blocks = new BlockIds(spec.prefix.groups * fullBlocks(spec.prefix.tokens));
  const arrivals: Arrival[] = [];
  for (let left = spec.requests, session = 0; left > 0; left -= spec.turns, session++) {
    const startMs = starts.next().value as number;
    const turns = drawTurns(spec, Math.min(left, spec.turns), random);
    const requests = requestsOf(turns, spec, `session-${session}`, blocks, random);
    if (spec.loop === "closed") arrivals.push({ atMs: startMs, request: closed(requests, turns) });
    else arrivals.push(...open(requests, turns, startMs));
  }
  arrivals.sort((a, b) => a.atMs - b.atMs);
  return { name: text, blockTokens: BLOCK_TOKENS, arrivals };
}

interface Turn {
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Before this turn; of no use for the first. */
  readonly thinkMs: number;
}

/** Gives out ids that were not in use. */
class BlockIds {
  #next: number;

  constructor(firstFree: number) {
    this.#next = firstFree;
  }

  take(count: number): number[] {
    return Array.from({ length: count }, () => this.#next++);
  }
}

function fullBlocks(tokens: number): number {
  return Math.floor(tokens / BLOCK_TOKENS);
}

function drawTurns(spec: SyntheticSpec, count: number, random: Random): Turn[] {
  let historyTokens = spec.prefix.tokens;
  return Array.from({ length: count }, () => {
    const promptTokens = historyTokens + drawTokens(spec.in, random);
    const outputTokens = drawTokens(spec.out, random);
    historyTokens = promptTokens + outputTokens;
    return { promptTokens, outputTokens, thinkMs: spec.think.draw(random) };
  });
}

function drawTokens(distribution: Distribution, random: Random): number {
  return Math.max(1, Math.round(distribution.draw(random)));
}

/**
 * A session's text only grows, so each prompt's chain is the beginning of the last one's. Chains end with the last
 * full block: what fills the rest of it is not the same from turn to turn.
 */
function requestsOf(
  turns: readonly Turn[],
  { prefix, turns: turnsPerSession }: SyntheticSpec,
  session: string,
  blocks: BlockIds,
  random: Random,
): WorkloadRequest[] {
  const shared = fullBlocks(prefix.tokens);
  const group = Math.floor(random.next() * prefix.groups);
  const chain = Array.from({ length: shared }, (_, block) => group * shared + block);
  chain.push(...blocks.take(fullBlocks(turns.at(-1)?.promptTokens ?? 0) - shared));
  return turns.map(({ promptTokens, outputTokens }) => ({
    promptTokens,
    outputTokens,
    blockIds: chain.slice(0, fullBlocks(promptTokens)),
    sessionKey: turnsPerSession === 1 ? undefined : session,
    tenant: undefined,
    next: undefined,
  }));
}

/** The first request, leading to all others. */
function closed(requests: readonly WorkloadRequest[], turns: readonly Turn[]): WorkloadRequest {
  return requests.reduceRight((following, request, index) => ({
    ...request,
    next: { thinkMs: (turns[index + 1] as Turn).thinkMs, request: following },
  }));
}

/** Turns that come when their time has come, answered or not. */
function open(requests: readonly WorkloadRequest[], turns: readonly Turn[], startMs: number): Arrival[] {
  let atMs = startMs;
  return requests.map((request, index) => {
    if (index > 0) atMs += (turns[index] as Turn).thinkMs;
    return { atMs, request };
  });
}
