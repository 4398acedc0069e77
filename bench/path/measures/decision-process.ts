import { baselineLoop, decisionLoop, requestsOf } from "../../decide/decisions.ts";
import { builtLayer } from "../../support/built.ts";

/** What decisions in pools of one size cost, in microseconds of CPU, one figure per round. */
export interface DecisionCost {
  readonly endpoints: number;
  /** With nothing in flight. */
  readonly idleUs: readonly number[];
  /** With `IN_FLIGHT` requests at each endpoint. */
  readonly busyUs: readonly number[];
  /** The bare look for the least of so many numbers. */
  readonly baselineUs: readonly number[];
}

const POOL_SIZES = [8, 100, 1000];
const IN_FLIGHT = 8;
const PROMPT_BYTES = 1_000;

/**
 * Decisions of the default policy, as built, in a process that does nothing else: the compiler has seen no other policy.
 * Started with `fork` and the number of rounds as argument; its message is the costs.
 */
const core = await builtLayer("core");
const requests = requestsOf(core, PROMPT_BYTES);
const rounds = Number(process.argv[2]);
const costs = POOL_SIZES.map((endpoints): DecisionCost => {
  const idle = decisionLoop(core, { endpoints, inFlight: 0, requests });
  const busy = decisionLoop(core, { endpoints, inFlight: IN_FLIGHT, requests });
  const baseline = baselineLoop(endpoints);
  // In turn: what else the machine does weighs on all of them.
  const samples = Array.from({ length: rounds }, () => ({ idle: idle(), busy: busy(), baseline: baseline() }));
  return {
    endpoints,
    idleUs: samples.map((sample) => sample.idle),
    busyUs: samples.map((sample) => sample.busy),
    baselineUs: samples.map((sample) => sample.baseline),
  };
});
process.send?.(costs, () => process.exit());
