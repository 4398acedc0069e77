import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { findPolicy, policyDefinitions } from "../src/core/index.ts";
import { type ReplayResult, replayText } from "./replay/report.ts";
import { type PolicyResult, PROFILE, type ReplayPlan, replayPolicy, SPEEDS } from "./replay/run.ts";
import { host } from "./support/host.ts";
import { ROOT } from "./support/install.ts";
import { positive } from "./support/positive.ts";
import { readTrace } from "./support/read-trace.ts";

/** Beside the repository, never in it. */
const DEFAULT_TRACE = join(ROOT, "..", "shared", "traces", "azure-2023-conv.csv");

const { values } = parseArgs({
  options: {
    trace: { type: "string", default: DEFAULT_TRACE },
    minutes: { type: "string", default: "15" },
    speedup: { type: "string", default: "15" },
    policies: { type: "string", default: "all" },
    seed: { type: "string", default: "1" },
    json: { type: "boolean", default: false },
  },
});

async function main(): Promise<void> {
  const minutes = positive("minutes", values.minutes);
  const plan: ReplayPlan = {
    trace: await readTrace(values.trace, minutes),
    speedup: positive("speedup", values.speedup),
    seed: Number(values.seed),
    scratch: await mkdtemp(join(tmpdir(), "evenkeel-replay-")),
  };
  const policies = await replayAll(plan).finally(() => rm(plan.scratch, { recursive: true }));
  const result: ReplayResult = {
    host: host(),
    trace: basename(values.trace),
    minutes,
    speedup: plan.speedup,
    seed: plan.seed,
    profile: PROFILE,
    speeds: SPEEDS,
    policies,
  };
  if (policies.some(({ failures }) => failures > 0)) process.exitCode = 1;
  process.stdout.write(`${values.json ? JSON.stringify(result) : replayText(result)}\n`);
}

async function replayAll(plan: ReplayPlan): Promise<PolicyResult[]> {
  const results: PolicyResult[] = [];
  for (const policy of policyNames()) {
    process.stderr.write(`replaying ${plan.trace.arrivals.length} requests under ${policy}\n`);
    results.push(await replayPolicy(plan, policy));
  }
  return results;
}

function policyNames(): string[] {
  if (values.policies === "all") return policyDefinitions.map(({ name }) => name);
  return values.policies.split(",").map((name) => findPolicy(name).name);
}

try {
  await main();
} catch (error) {
  process.stderr.write(`error: ${(error as Error).message}\n`);
  process.exitCode = 1;
}
