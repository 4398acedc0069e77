/** What the engine model needs to know of a request; the object itself is its identity. */
export interface EngineRequest {
  readonly promptTokens: number;
  /** Tokens it will generate, exactly; 0: prefill only (embeddings, scoring). */
  readonly outputTokens: number;
  /**
   * Hash chain over full blocks of prompt and output, shallow to deep. It may end early: what it does not
   * cover is never found in the prefix cache.
   */
  readonly blockHashes: readonly number[];
}

/** A request inside the engine. Its tokens are the prompt and what it generated so far. */
export class Sequence<Request extends EngineRequest = EngineRequest> {
  readonly request: Request;
  readonly blocks: number[] = [];
  /** Tokens whose keys and values are in the cache. Out of date while it decodes: the batch counts for it. */
  computedTokens = 0;
  /** Out of date while it decodes: the batch counts for it. */
  generatedTokens = 0;
  /** Prompt tokens, or tokens to recompute, in the step in progress. */
  scheduledTokens = 0;
  /** Leading blocks that are in the prefix cache, or were found to be there already. */
  indexedBlocks = 0;
  /** Prompt tokens found when it was first admitted; undefined: it never was. */
  cachedTokens: number | undefined = undefined;
  /** Where it stands among all admissions; an earlier one has the right of way. */
  admission = 0;
  /** The batch's count of steps less `generatedTokens`, which stays as it is; undefined: it does not decode. */
  decodeOrigin: number | undefined = undefined;
  /** It was taken out before its end. */
  isAborted = false;

  constructor(request: Request) {
    this.request = request;
  }

  /** Prompt and output so far. Out of date while it decodes. */
  get tokens(): number {
    return this.request.promptTokens + this.generatedTokens;
  }

  get isFinished(): boolean {
    return this.generatedTokens >= this.request.outputTokens;
  }
}
