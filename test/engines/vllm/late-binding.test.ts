import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { drawLoad, type LoadSpec } from "../harness/chat-load.ts";
import { printTable } from "../harness/figures.ts";
import { type FleetRun, latenciesOf, runFleet } from "../harness/fleet-run.ts";
import { Serve } from "../harness/serve.ts";
import { VLLM_BLOCK_TOKENS, VllmServer } from "../harness/vllm-server.ts";

/**
 * Two engines whose KV cache is what limits them, at a load that fills it: who waits, where, and in which order
 * decides everything. Clients say nothing of the length of the answers.
 */
const BLOCKS = 224;
const KV_TOKENS = (BLOCKS - 1) * VLLM_BLOCK_TOKENS;
const SEEDS = [1, 2, 3];
const LOAD: Omit<LoadSpec, "seed" | "seconds"> = {
  perSecond: 7,
  shortWords: [22, 142],
  longWords: [992, 2492],
  longShare: 0.15,
  meanAnswerTokens: 150,
};
/** More requests, since these are smaller: at 7 a second the caches would not fill. */
const EVEN_LOAD: typeof LOAD = { ...LOAD, perSecond: 10, shortWords: [22, 292], longShare: 0 };

/** A run with its engines' way to idle takes a quarter longer than its load. */
const SECONDS = 80;
const LIMIT_MS = 2 * 3 * SEEDS.length * SECONDS * 1000;

const POLICIES = {
  least_connections: "policy: least_connections",
  "least_delay, sent at once": "policy: { name: least_delay, lateBinding: false }",
  "least_delay, held": "policy: least_delay",
};
type PolicyTitle = keyof typeof POLICIES;
const HELD: PolicyTitle = "least_delay, held";
const SENT_AT_ONCE = (Object.keys(POLICIES) as PolicyTitle[]).filter((title) => title !== HELD);

let engines: VllmServer[];
let folder: string;
const rows: Record<string, string | number>[] = [];

beforeAll(async () => {
  engines = await VllmServer.startSeveral(2, {
    context: 3400,
    blocks: BLOCKS,
    sequences: 64,
    pace: { stepMs: 16, tokenMs: 0.13 },
  });
  folder = await mkdtemp(join(tmpdir(), "late-binding-"));
  return async () => {
    for (const engine of engines) await engine.kill();
    await rm(folder, { recursive: true });
  };
});

afterAll(() => {
  printTable(`Two vLLM with ${KV_TOKENS} tokens of KV cache each; ms`, rows);
});

async function flagsOf(policy: string): Promise<string[]> {
  const file = join(folder, "evenkeel.yaml");
  await writeFile(file, policy);
  return ["--config", file];
}

/** Every policy has the same requests at the same moments. */
async function runAll(name: string, spec: typeof LOAD): Promise<Record<PolicyTitle, FleetRun[]>> {
  const runs = Object.fromEntries(Object.keys(POLICIES).map((title) => [title, [] as FleetRun[]]));
  for (const seed of SEEDS) {
    const load = drawLoad({ ...spec, seed, seconds: SECONDS });
    for (const [title, policy] of Object.entries(POLICIES)) {
      const run = await runFleet(engines, await flagsOf(policy), load);
      runs[title]?.push(run);
      rows.push(rowOf(name, title, seed, run));
    }
  }
  return runs as Record<PolicyTitle, FleetRun[]>;
}

function rowOf(load: string, policy: string, seed: number, run: FleetRun): Record<string, string | number> {
  const { ttftMs, shortTtftMs, longTtftMs, longTtftP99Ms, totalMs } = latenciesOf([run]);
  return {
    load,
    policy,
    seed,
    TTFT: Math.round(ttftMs),
    "of short": Math.round(shortTtftMs),
    "of long": Math.round(longTtftMs),
    "p99 of long": Math.round(longTtftP99Ms),
    E2E: Math.round(totalMs),
    preemptions: run.preemptions,
    "tokens/s": Math.round(run.tokensPerSecond),
    held: run.holds,
    "held at most, s": run.longestHoldSeconds,
    failed: run.failures,
  };
}

function preemptionsOf(runs: readonly FleetRun[]): number {
  return runs.reduce((sum, { preemptions }) => sum + preemptions, 0);
}

function failuresOf(runs: Record<PolicyTitle, FleetRun[]>): number {
  return Object.values(runs)
    .flat()
    .reduce((sum, { failures }) => sum + failures, 0);
}

it("knows the size of the KV cache and of its blocks from the engines", async () => {
  const serve = await Serve.start(engines.map(({ url }) => url));
  try {
    await expect
      .poll(async () =>
        (await serve.endpoints()).map(({ kvCapacityTokens, signals }) => [kvCapacityTokens, signals?.kvBlockTokens]),
      )
      .toEqual([
        [KV_TOKENS, VLLM_BLOCK_TOKENS],
        [KV_TOKENS, VLLM_BLOCK_TOKENS],
      ]);
  } finally {
    await serve.stop();
  }
});

describe("with a few long prompts among many short ones", () => {
  it("holding answers sooner and preempts less, and long prompts pay little for it", {
    timeout: LIMIT_MS,
  }, async () => {
    const runs = await runAll(`few long, ${LOAD.perSecond}/s`, LOAD);
    expect(failuresOf(runs)).toBe(0);
    const held = latenciesOf(runs[HELD]);
    for (const title of SENT_AT_ONCE) {
      const sent = latenciesOf(runs[title]);
      expect.soft(held.ttftMs / sent.ttftMs, `TTFT against ${title}`).toBeLessThan(0.55);
      expect.soft(held.totalMs / sent.totalMs, `E2E against ${title}`).toBeLessThan(0.85);
      expect.soft(held.longTtftP99Ms / sent.longTtftP99Ms, `p99 of long against ${title}`).toBeLessThan(1.8);
      const preempted = preemptionsOf(runs[HELD]) / preemptionsOf(runs[title]);
      expect.soft(preempted, `preemptions against ${title}`).toBeLessThan(0.2);
    }
  });
});

describe("with prompts of even length", () => {
  it("holding is no worse than sending at once", { timeout: LIMIT_MS }, async () => {
    const runs = await runAll(`even, ${EVEN_LOAD.perSecond}/s`, EVEN_LOAD);
    expect(failuresOf(runs)).toBe(0);
    const held = latenciesOf(runs[HELD]);
    for (const title of SENT_AT_ONCE) {
      const sent = latenciesOf(runs[title]);
      expect.soft(held.ttftMs / sent.ttftMs, `TTFT against ${title}`).toBeLessThan(1 + NOISE);
      expect.soft(held.totalMs / sent.totalMs, `E2E against ${title}`).toBeLessThan(1 + NOISE);
    }
  });
});

/** By as much do repeats of one policy with one load differ. */
const NOISE = 0.25;
