import type { Random } from "../core/index.ts";
import { TOKEN_BYTES } from "./tokens.ts";

/**
 * Three letters and a space are one token, so a reply that comes back inside the next prompt has the very
 * tokens that were generated, and hits the prefix cache.
 */
const WORDS: readonly string[] = (
  "ant arc arm ash bay bed bee box bud cap cod cup dew dog ear eel egg elm fig fin fir fox gem gum hat hay hen hut " +
  "ice ink ivy jar jay jet key kit lid log map mud net nut oak oar oat owl pan pea pen pie pin pod ray rib rod rye " +
  "sea sky sun tea tin toe urn"
).split(" ");

const SPACED_WORDS: readonly string[] = WORDS.map((word) => ` ${word}`);

const WORD_TOKENS: Uint32Array = new Uint32Array(
  Uint8Array.from(Buffer.from(WORDS.map((word) => word.padEnd(TOKEN_BYTES)).join(""))).buffer,
);

/** Generated text, one token per word. */
export interface Reply {
  readonly tokens: Uint32Array;
  /** What each token adds to the text. */
  readonly pieces: readonly string[];
}

/** Words drawn one after the other; the same draws give the same reply. */
export function generateReply(length: number, random: Random): Reply {
  const tokens = new Uint32Array(length);
  const pieces = new Array<string>(length);
  for (let i = 0; i < length; i++) {
    const word = Math.floor(random.next() * WORDS.length);
    tokens[i] = WORD_TOKENS[word] as number;
    pieces[i] = (i === 0 ? WORDS : SPACED_WORDS)[word] as string;
  }
  return { tokens, pieces };
}

/** What a request says about the length of its output. */
export interface OutputBounds {
  /** Undefined: up to the context window. */
  readonly maxTokens: number | undefined;
  readonly minTokens: number;
  /** Generate until a bound stops it. */
  readonly ignoreEos: boolean;
  /** The length the reply would have by itself; undefined: it is drawn. */
  readonly naturalTokens: number | undefined;
}

export interface OutputPlan {
  readonly tokens: number;
  readonly finishReason: "stop" | "length";
}

/** A request for at most this many tokens gets exactly as many: so small a bound is a test or a label, not a chat. */
export const EXACT_TOKENS = 64;

/** Lengths of real chat replies (Azure LLM inference trace 2023, conversation): median 129, mean 211, fitted log-normal. */
const MEDIAN_TOKENS = 129;
const LOG_DEVIATION = 0.99;

/** Decides how much is generated: `maxTokens` where that is asked for or small, else a natural length below it. */
export function planOutput(bounds: OutputBounds, roomTokens: number, random: Random): OutputPlan {
  const limit = Math.min(bounds.maxTokens ?? roomTokens, roomTokens);
  const isSmall = bounds.maxTokens !== undefined && bounds.maxTokens <= EXACT_TOKENS;
  const isExact = bounds.ignoreEos || (isSmall && bounds.naturalTokens === undefined);
  if (isExact) return { tokens: limit, finishReason: "length" };
  const natural = Math.max(1, bounds.minTokens, bounds.naturalTokens ?? drawnTokens(random));
  return natural >= limit ? { tokens: limit, finishReason: "length" } : { tokens: natural, finishReason: "stop" };
}

function drawnTokens(random: Random): number {
  return Math.round(MEDIAN_TOKENS * Math.exp(LOG_DEVIATION * gaussian(random)));
}

/** A standard normal draw (Box and Muller). */
function gaussian(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}
