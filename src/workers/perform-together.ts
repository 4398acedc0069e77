import { type AdminAnswer, type AdminAsked, type PerformAdmin, refusal, reloadAnswer } from "../gateway/index.ts";
import type { Reloader } from "../runtime/index.ts";
import { askEach } from "./ask-each.ts";
import type { Common } from "./common.ts";
import type { MetricsTogether } from "./metrics-together.ts";
import { WorkerError, type WorkerProcess } from "./worker-process.ts";

/** What workers need to answer as one. */
export interface TogetherParts {
  /** Those that serve now. */
  readonly serving: () => readonly WorkerProcess[];
  readonly common: Common;
  readonly reloader: Reloader;
  readonly metrics: MetricsTogether;
}

/** Does what the admin listener is asked, by workers that each have the gateway's own way of doing it. */
export function performTogether({ serving, common, reloader, metrics }: TogetherParts): PerformAdmin {
  const perform: PerformAdmin = async ({ scope }, asked) => {
    switch (scope.kind) {
      case "any":
        return answerOfAny(serving(), asked);
      case "all":
        return scope.together(await answersOfAll(serving(), asked));
      case "change":
        return scope.together(await common.change(asked));
      case "metrics": {
        const answered = await askEach(serving(), { kind: "metrics" });
        return metrics.page(new Map(answered.flatMap((one) => (one.ok ? [[one.worker, one.answer]] : []))));
      }
      case "reload": {
        const report = reloader.reload("api");
        await common.settled;
        return reloadAnswer(report);
      }
    }
  };
  return async (task, asked) => {
    try {
      return await perform(task, asked);
    } catch (error) {
      if (error instanceof WorkerError) return refusal(503, error.message);
      throw error;
    }
  };
}

/** The first that can: one that has just died is no reason not to answer. */
async function answerOfAny(workers: readonly WorkerProcess[], asked: AdminAsked): Promise<AdminAnswer> {
  let problem = NOBODY;
  for (const worker of workers) {
    try {
      return await worker.ask({ kind: "admin", asked });
    } catch (error) {
      if (!(error instanceof WorkerError)) throw error;
      problem = error;
    }
  }
  throw problem;
}

/** One that lives and does not answer is told of like one that refuses. */
async function answersOfAll(
  workers: readonly WorkerProcess[],
  asked: AdminAsked,
): Promise<readonly [AdminAnswer, ...AdminAnswer[]]> {
  const answered = await askEach(workers, { kind: "admin", asked });
  const [first, ...others] = answered
    .filter(({ worker }) => worker.isAlive)
    .map((one) => (one.ok ? one.answer : refusal(503, one.error.message)));
  if (first === undefined) throw NOBODY;
  return [first, ...others];
}

const NOBODY = new WorkerError("no worker serves");
