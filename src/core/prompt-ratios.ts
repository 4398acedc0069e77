/** UTF-8 bytes of text per prompt token, learned per model from the engines' `usage`. */
export class PromptRatios {
  readonly #byModel = new Map<string, { bytes: number; tokens: number }>();

  /** Bytes per token; `START_RATIO` for a model nothing was seen of. */
  ratio(model: string): number {
    const seen = this.#byModel.get(model);
    return seen === undefined ? START_RATIO : seen.bytes / seen.tokens;
  }

  /** The engine counted `tokens` in a prompt of `bytes` of text and nothing else. */
  observe(model: string, bytes: number, tokens: number): void {
    if (!(bytes > 0 && tokens > 0)) return;
    let seen = this.#byModel.get(model);
    if (seen === undefined) {
      if (this.#byModel.size >= MAX_MODELS) return;
      seen = { bytes: START_RATIO * START_TOKENS, tokens: START_TOKENS };
      this.#byModel.set(model, seen);
    }
    if (seen.tokens > FADE_AT_TOKENS) {
      seen.bytes /= 2;
      seen.tokens /= 2;
    }
    seen.bytes += bytes;
    seen.tokens += tokens;
  }
}

/** English and code run at about 4 bytes a token on the common vocabularies. */
const START_RATIO = 4;
/** The start weighs as much as this many counted tokens: two ordinary prompts outweigh it. */
const START_TOKENS = 500;
/** Older counts fade once this many tokens were seen, so that a change of traffic shows within as many again. */
const FADE_AT_TOKENS = 1_000_000;
/** Names may come from clients where an endpoint accepts any model. */
const MAX_MODELS = 1024;
