import type { EngineJob } from "./driver.ts";
import type { Choice, Usage } from "./generation.ts";
import type { OutputPlan, Reply } from "./reply.ts";

/** How jobs ended, by vLLM's names. */
export type FinishCounts = Record<"stop" | "length" | "abort", number>;

/** Who is told how a job gets on. */
export interface JobListener {
  /** Its prompt is computed. */
  started?(job: Job): void;
  /** It generated the next `piece` of its reply. */
  piece?(job: Job, piece: string): void;
  ended(job: Job): void;
}

export interface JobPlan {
  readonly index: number;
  readonly promptTokens: number;
  readonly blockHashes: readonly number[];
  readonly reply: Reply;
  readonly finishReason: OutputPlan["finishReason"];
}

/** One sequence of the engine: a choice of a generation, or a prompt that is only computed. */
export class Job implements EngineJob, Choice {
  readonly index: number;
  readonly promptTokens: number;
  readonly blockHashes: readonly number[];
  readonly reply: Reply;
  readonly finishReason: OutputPlan["finishReason"];
  readonly #listener: JobListener;
  readonly #finishCounts: FinishCounts;
  #cachedTokens = 0;
  #generatedTokens = 0;

  constructor(plan: JobPlan, listener: JobListener, finishCounts: FinishCounts) {
    this.index = plan.index;
    this.promptTokens = plan.promptTokens;
    this.blockHashes = plan.blockHashes;
    this.reply = plan.reply;
    this.finishReason = plan.finishReason;
    this.#listener = listener;
    this.#finishCounts = finishCounts;
  }

  get outputTokens(): number {
    return this.reply.tokens.length;
  }

  get usage(): Usage {
    return {
      promptTokens: this.promptTokens,
      cachedTokens: this.#cachedTokens,
      outputTokens: this.#generatedTokens,
    };
  }

  prefilled(cachedTokens: number): void {
    this.#cachedTokens = cachedTokens;
    this.#listener.started?.(this);
  }

  token(generatedTokens: number): void {
    this.#generatedTokens = generatedTokens;
    this.#listener.piece?.(this, this.reply.pieces[generatedTokens - 1] as string);
  }

  finished(): void {
    this.#finishCounts[this.finishReason]++;
    this.#listener.ended(this);
  }
}

/** Usage of a whole request: a prompt counts once, however many choices were generated from it. */
export function totalUsage(jobs: readonly Job[], choicesPerPrompt: number): Usage {
  let promptTokens = 0;
  let cachedTokens = 0;
  let outputTokens = 0;
  for (const job of jobs) {
    const { usage } = job;
    outputTokens += usage.outputTokens;
    if (job.index % choicesPerPrompt !== 0) continue;
    promptTokens += usage.promptTokens;
    cachedTokens += usage.cachedTokens;
  }
  return { promptTokens, cachedTokens, outputTokens };
}
