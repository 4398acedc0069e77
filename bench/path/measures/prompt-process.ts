import type { readRequest } from "../../../src/gateway/index.ts";
import { cpuUsEach } from "../../decide/decisions.ts";
import { builtLayer } from "../../support/built.ts";
import { longPrompts } from "../long-prompts.ts";
import { MODEL } from "../workload.ts";

/** What a long prompt costs before it is sent, in milliseconds of CPU, one figure per round. */
export interface PromptCost {
  readonly name: string;
  /** All of it: from the bytes of the body to the open lease. */
  readonly totalMs: readonly number[];
  readonly parseMs: readonly number[];
  readonly hashMs: readonly number[];
  readonly decideMs: readonly number[];
  /** Bare `JSON.parse` of the decoded body. */
  readonly baselineMs: readonly number[];
}

const ENDPOINTS = 8;
const ROUND_MS = 150;
/** Tokens of a prompt: 4 bytes each. */
const PROMPT_TOKENS = 100_000;
/** Between two requests; nothing is in flight from one to the next. */
const STEP_MS = 1000;

/**
 * The built program's own functions at work on long prompts, in a process that does nothing else. Started with `fork`
 * and the number of rounds as argument; its message is the costs.
 */
const core = await builtLayer("core");
const gateway = await builtLayer("gateway");
const rounds = Number(process.argv[2]);

const balancer = core.createBalancer({
  endpoints: Array.from({ length: ENDPOINTS }, (_, i) => core.endpoint({ id: `endpoint-${i}` })),
});
let nowMs = 0;

const costs = longPrompts().map(({ name, body }): PromptCost => {
  const bytes = Buffer.from(body);
  const facts = read(bytes);
  const prefix = hash(facts);
  return {
    name,
    totalMs: cpuMs(() => decide(hash(read(bytes)))),
    parseMs: cpuMs(() => read(bytes)),
    hashMs: cpuMs(() => hash(facts)),
    decideMs: cpuMs(() => decide(prefix)),
    baselineMs: cpuMs(() => JSON.parse(bytes.toString("utf8"))),
  };
});
process.send?.(costs, () => process.exit());

type Facts = Extract<ReturnType<typeof readRequest>, { isReadable: true }>;

function read(bytes: Buffer): Facts {
  const facts = gateway.readRequest("chat", bytes);
  if (!facts.isReadable) throw new Error(facts.message);
  return facts;
}

function hash(facts: Facts): ReturnType<Facts["hashPrefix"]> {
  return facts.hashPrefix(PROMPT_TOKENS);
}

function decide(prefix: ReturnType<Facts["hashPrefix"]>): void {
  nowMs += STEP_MS;
  const profile = core.requestProfile({ promptTokens: PROMPT_TOKENS, model: MODEL, prefix });
  const decision = balancer.decide(profile, nowMs);
  if (decision.kind !== "routed") throw new Error(`a request is to be sent, but was ${decision.kind}`);
  balancer.finish(decision.lease, { kind: "completed", outputTokens: 100 }, nowMs + 1);
}

/** One figure per round; the first round, in which code is compiled, does not count. */
function cpuMs(call: () => unknown): number[] {
  return Array.from({ length: rounds + 1 }, () => cpuUsEach(call, ROUND_MS) / 1000).slice(1);
}
