import { peerPolicies } from "../../src/sim/index.ts";
import { host } from "../support/host.ts";
import { type Cell, keyOf } from "./cells.ts";
import { bestBy, type Contender, type Figures, finalists, meanFigures } from "./contest.ts";
import { DISTURBANCES } from "./disturbed.ts";
import type { CellResult, DisturbedResult, OwnResult, ReplicatedResult, RoutingResult } from "./result.ts";
import { judge, type Target } from "./targets.ts";
import type { Trial, TrialResult } from "./trial.ts";

/** How to run it. */
export interface RoutingOptions {
  readonly cells: readonly Cell[];
  readonly seeds: number;
  /** With few peers in every cell. */
  readonly isQuick: boolean;
  run(trial: Trial): Promise<TrialResult>;
  /** Tells somebody who waits what is going on. */
  progress(text: string): void;
}

const OURS = "least_delay";

/** Of each class those that were the best by some metric in some cell: enough to see where a change of ours leads. */
const FEW_PEERS: readonly string[] = [
  ...["lmetric", "dynamo_32", "llm_d_4_4_1", "smg_least_load"],
  ...["dynamo_queue_0_shortest", "dynamo_queue_0.25_shortest", "skywalker"],
  ...["expert_lmetric_shortest", "expert_dynamo_32_shortest"],
];

const REPLICAS = 4;
const EXCHANGE_MS = 200;
const MAX_E2E_LOSS = 0.03;

/** Runs all cells; each peer on the first seed, those near the best of their class on the others. */
export async function runRouting(options: RoutingOptions): Promise<RoutingResult> {
  const startedMs = performance.now();
  const speed = { runs: 0, requests: 0, wallMs: 0, cpuMs: 0 };
  const results = new Map<string, Promise<TrialResult>>();
  const runOnce = async (trial: Trial): Promise<TrialResult> => {
    const result = await options.run(trial);
    speed.runs++;
    speed.requests += result.requests;
    speed.wallMs += result.wallMs;
    speed.cpuMs += result.cpuMs;
    return result;
  };
  /** Some are asked for more than once. */
  const run = (trial: Trial): Promise<TrialResult> => {
    const key = JSON.stringify(trial);
    const result = results.get(key) ?? runOnce(trial);
    results.set(key, result);
    return result;
  };
  const progress = (text: string): void =>
    options.progress(`${((performance.now() - startedMs) / 1000).toFixed(0).padStart(4)} s  ${text}`);
  const cells = await Promise.all(
    options.cells.map((cell) => new CellRun(cell, { ...options, run, progress }).result()),
  );
  return {
    host: host(),
    seeds: options.seeds,
    cells,
    speed: { ...speed, requestsPerSecond: (1000 * speed.requests) / speed.wallMs },
    wallMs: performance.now() - startedMs,
  };
}

/** One cell on its way through the run. */
class CellRun {
  readonly #cell: Cell;
  readonly #options: RoutingOptions;
  readonly #seeds: readonly number[];
  readonly #unended = new Map<string, number>();

  constructor(cell: Cell, options: RoutingOptions) {
    this.#cell = cell;
    this.#options = options;
    // What has no target is only shown.
    const seeds = cell.targets.length === 0 ? 1 : options.seeds;
    this.#seeds = Array.from({ length: seeds }, (_, index) => index + 1);
  }

  async result(): Promise<CellResult> {
    const { name, fleet, slo, use, targets, hasReplicas } = this.#cell;
    const oursFirst = this.#figures(OURS, 1);
    const first = await this.#firstSeed();
    this.#options.progress(`${keyOf(this.#cell)}: ${first.length} peers on the first seed`);
    const chosen = new Set([...finalists(first), ...namedRivals(targets)]);
    const others = first.filter((contender) => !chosen.has(contender.name));
    const [ours, contenders, disturbed, replicated] = await Promise.all([
      this.#ours(),
      Promise.all(first.filter((contender) => chosen.has(contender.name)).map((each) => this.#allSeeds(each))),
      this.#disturbed(await oursFirst, first),
      hasReplicas ? this.#replicated() : undefined,
    ]);
    this.#options.progress(`${keyOf(this.#cell)}: done, ${contenders.length} peers on all seeds`);
    return {
      cell: { name, fleet, slo, use },
      seeds: this.#seeds.length,
      ours,
      contenders,
      others,
      verdicts: targets.map((target) =>
        judge(target, (target.hasTpotTarget ? ours.withTpotTarget : undefined) ?? ours.figures, contenders),
      ),
      disturbed,
      replicated,
      unfinished: this.#unfinished(),
    };
  }

  async #ours(): Promise<OwnResult> {
    const hasTpotTarget = this.#cell.targets.some((target) => target.hasTpotTarget);
    const [figures, withTpotTarget] = await Promise.all([
      this.#means({ policy: OURS }),
      hasTpotTarget ? this.#means({ policy: OURS, hasTpotTarget }) : undefined,
    ]);
    return { figures, withTpotTarget };
  }

  #firstSeed(): Promise<Contender[]> {
    // What has no target is only shown.
    const areFew = this.#options.isQuick || this.#cell.targets.length === 0;
    const entering = peerPolicies.filter(({ definition }) => !areFew || FEW_PEERS.includes(definition.name));
    return Promise.all(
      entering.map(async ({ definition: { name }, class: group }) => ({
        name,
        class: group,
        figures: await this.#figures(name, 1),
      })),
    );
  }

  async #allSeeds({ name, class: group, figures }: Contender): Promise<Contender> {
    const further = await Promise.all(this.#seeds.slice(1).map((seed) => this.#figures(name, seed)));
    return { name, class: group, figures: meanFigures([figures, ...further]) };
  }

  /** On the first seed alone, where ours is ahead when it is told the truth. */
  async #disturbed(ours: Figures, contenders: readonly Contender[]): Promise<DisturbedResult[] | undefined> {
    const bestMs = bestBy("e2eMs", contenders)?.figures.e2eMs;
    if (bestMs === undefined || ours.e2eMs >= bestMs) return undefined;
    return await Promise.all(
      DISTURBANCES.map(async ({ name }) => {
        const { e2eMs } = await this.#run({ policy: OURS, disturbance: name, seed: 1 });
        return { disturbance: name, e2eMs, e2eRatio: e2eMs / bestMs, isMet: e2eMs < bestMs };
      }),
    );
  }

  async #replicated(): Promise<ReplicatedResult> {
    const [one, exchanging, alone] = await Promise.all([
      this.#means({ policy: OURS }),
      this.#means({ policy: OURS, replicas: { count: REPLICAS, exchangeMs: EXCHANGE_MS } }),
      this.#means({ policy: OURS, replicas: { count: REPLICAS } }),
    ]);
    const e2eLoss = exchanging.e2eMs / one.e2eMs - 1;
    return {
      count: REPLICAS,
      exchangeMs: EXCHANGE_MS,
      e2eLoss,
      aloneE2eLoss: alone.e2eMs / one.e2eMs - 1,
      isMet: e2eLoss <= MAX_E2E_LOSS,
    };
  }

  async #means(entry: Omit<Trial, "cell" | "seed">): Promise<Figures> {
    return meanFigures(await Promise.all(this.#seeds.map((seed) => this.#run({ ...entry, seed }))));
  }

  #figures(policy: string, seed: number): Promise<Figures> {
    return this.#run({ policy, seed });
  }

  async #run(entry: Omit<Trial, "cell">): Promise<Figures> {
    const { figures, requests, ended } = await this.#options.run({ cell: keyOf(this.#cell), ...entry });
    if (entry.disturbance === undefined && entry.replicas === undefined && entry.seed === 1) {
      this.#unended.set(entry.policy, requests - ended);
    }
    return figures;
  }

  #unfinished(): Record<string, number> {
    const ours = this.#unended.get(OURS) ?? 0;
    return Object.fromEntries([...this.#unended].filter(([, unended]) => unended > ours));
  }
}

function namedRivals(targets: readonly Target[]): string[] {
  return targets.flatMap(({ against }) => (typeof against === "string" ? [against] : []));
}
