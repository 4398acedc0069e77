import { seededRandom } from "../core/index.ts";
import { BLOCK_TOKENS, type EngineProfile, engineProfile } from "../sim/index.ts";
import { EngineDriver } from "./driver.ts";
import { badRequest, type Failure } from "./failure.ts";
import { FaultScript } from "./faults.ts";
import type { Generation } from "./generation.ts";
import { type FinishCounts, Job, type JobListener, type JobPlan } from "./job.ts";
import type { EngineSettings } from "./options.ts";
import type { Prompt } from "./prompt.ts";
import { generateReply, planOutput, type Reply } from "./reply.ts";
import { blockHashes, digest, tokenize } from "./tokens.ts";

/** Context window where neither option nor KV cache says less: that of Llama 3.1. */
const DEFAULT_MODEL_LEN = 131_072;

const NO_REPLY: Reply = { tokens: new Uint32Array(0), pieces: [] };

/** The served model: its limits, what it is working on and how it misbehaves. Knows nothing of HTTP. */
export class Engine {
  readonly model: string;
  readonly maxModelLen: number;
  readonly driver: EngineDriver;
  readonly faults: FaultScript;
  readonly finishCounts: FinishCounts = { stop: 0, length: 0, abort: 0 };
  readonly #seed: number;

  constructor(settings: EngineSettings) {
    const profile = effectiveProfile(settings);
    this.model = settings.model;
    this.driver = new EngineDriver(profile, settings.speed);
    this.maxModelLen = settings.maxModelLen ?? Math.min(DEFAULT_MODEL_LEN, this.driver.totalBlocks * BLOCK_TOKENS);
    this.faults = new FaultScript(settings.faults);
    this.#seed = settings.seed;
  }

  /** Token ids of a prompt. */
  tokens(prompt: Prompt): Uint32Array {
    return prompt instanceof Uint32Array ? prompt : tokenize(prompt);
  }

  /** One job per choice. */
  planGeneration(generation: Generation): JobPlan[] | Failure {
    const plans: JobPlan[] = [];
    for (const prompt of generation.prompts) {
      const tokens = this.tokens(prompt);
      const refusal = this.#checkLength(tokens.length, generation.maxTokens ?? 1);
      if (refusal !== undefined) return refusal;
      for (let copy = 0; copy < generation.choicesPerPrompt; copy++) {
        plans.push(this.#planChoice(generation, tokens, plans.length, copy));
      }
    }
    return plans;
  }

  /** One job per prompt, which is computed and generates nothing. */
  planPrefill(prompts: readonly Uint32Array[]): JobPlan[] | Failure {
    const plans: JobPlan[] = [];
    for (const tokens of prompts) {
      const refusal = this.#checkLength(tokens.length, 0);
      if (refusal !== undefined) return refusal;
      plans.push({
        index: plans.length,
        promptTokens: tokens.length,
        blockHashes: blockHashes(tokens, NO_REPLY.tokens, this.model),
        reply: NO_REPLY,
        finishReason: "stop",
      });
    }
    return plans;
  }

  /** Submits the plans in order. */
  start(plans: readonly JobPlan[], listener: JobListener): readonly Job[] {
    const jobs = plans.map((plan) => new Job(plan, listener, this.finishCounts));
    for (const job of jobs) this.driver.submit(job);
    return jobs;
  }

  /** Stops those that still run. */
  abort(jobs: readonly Job[]): void {
    for (const job of jobs) {
      if (this.driver.abort(job)) this.finishCounts.abort++;
    }
  }

  /** The same prompt and seeds give the same reply, whatever else is running. */
  #planChoice(generation: Generation, tokens: Uint32Array, index: number, copy: number): JobPlan {
    const seeds = Uint32Array.of(this.#seed, generation.seed, copy, digest(tokens));
    const random = seededRandom(digest(seeds));
    const output = planOutput(generation, this.maxModelLen - tokens.length, random);
    const reply = generateReply(output.tokens, random);
    const scope = generation.cacheSalt === undefined ? this.model : `${this.model}\n${generation.cacheSalt}`;
    return {
      index,
      promptTokens: tokens.length,
      blockHashes: blockHashes(tokens, reply.tokens, scope),
      reply,
      finishReason: output.finishReason,
    };
  }

  #checkLength(promptTokens: number, outputTokens: number): Failure | undefined {
    if (promptTokens === 0) return badRequest("The prompt is empty.");
    if (promptTokens + outputTokens <= this.maxModelLen) return undefined;
    return badRequest(
      `This model's maximum context length is ${this.maxModelLen} tokens, but the prompt has ${promptTokens} ` +
        `and at least ${outputTokens} were to be generated.`,
    );
  }
}

function effectiveProfile(settings: EngineSettings): EngineProfile {
  const profile = engineProfile(settings.profile);
  if (profile === undefined) throw new RangeError(`unknown engine profile "${settings.profile}"`);
  return {
    ...profile,
    kvTokens: settings.kvTokens ?? profile.kvTokens,
    maxSequences: settings.maxSequences ?? profile.maxSequences,
  };
}
