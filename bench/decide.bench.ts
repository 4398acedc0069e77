/**
 * CPU per decision for each policy by size of pool and length of prompt. Run with `npx tsx bench/decide.bench.ts`;
 * `--json` prints one JSON object instead of the tables.
 */

import * as core from "../src/core/index.ts";
import { cpuUsEach, decisionLoop, hashOf, requestsOf, textOf } from "./decide/decisions.ts";

const POOL_SIZES = [8, 100, 200, 1000];
const PROMPTS = [
  { name: "1 kB", bytes: 1_000 },
  { name: "400 kB", bytes: 400_000 },
];
const IN_FLIGHT = 8;
/** The best of some rounds: what else the machine does can only slow a round down. */
const ROUNDS = 5;
const HASH_ROUND_MS = 50;

/** Every request is to be sent at once, so that each decision has a lease to close, however much is in flight. */
const POLICY_OPTIONS: Readonly<Record<string, object>> = {
  token_aware: { horizonSeconds: 3600 },
  least_delay: { lateBinding: false },
};

const rows = PROMPTS.flatMap(({ name: prompt, bytes }) => {
  const requests = requestsOf(core, bytes);
  return core.policyDefinitions.map(({ name: policy }) => {
    const policyOptions = POLICY_OPTIONS[policy] ?? {};
    const us = POOL_SIZES.map((endpoints) => {
      const sample = decisionLoop(core, { policy, policyOptions, endpoints, inFlight: IN_FLIGHT, requests });
      return [`${endpoints} endpoints`, best(Array.from({ length: ROUNDS }, sample))];
    });
    return { prompt, policy, ...Object.fromEntries(us) };
  });
});
const hashes = PROMPTS.map(({ name, bytes }) => ({ prompt: name, usPerHash: usPerHash(bytes) }));

if (process.argv.includes("--json")) console.log(JSON.stringify({ bench: "decide", unit: "us", rows, hashes }));
else {
  console.log("us per decision and finish");
  console.table(rows);
  console.table(hashes);
}

function usPerHash(bytes: number): number {
  const random = core.seededRandom(1);
  const text = textOf(bytes, () => random.next());
  return best(Array.from({ length: ROUNDS }, () => cpuUsEach(() => hashOf(core, text), HASH_ROUND_MS)));
}

function best(us: readonly number[]): number {
  return Number(Math.min(...us).toPrecision(3));
}
