import { BLOCK_TOKENS } from "../sim/index.ts";

/** UTF-8 bytes per token: a token is a 32-bit word of the text. About what tokenizers reach on English. */
export const TOKEN_BYTES = 4;

/** Tokens an image or a sound stands for, whatever its bytes: the 24 x 24 patches of a common vision encoder. */
export const MEDIA_TOKENS = 576;

/** A piece of a prompt: text, or something that is not text and is told apart by `media`. */
export type PromptPart = { readonly text: string } | { readonly media: string };

/** Turns a prompt into token ids. Every part starts on a token of its own: spaces fill the gap. */
export function tokenize(parts: readonly PromptPart[]): Uint32Array {
  let total = 0;
  for (const part of parts) total += tokensOf(part);
  const bytes = Buffer.alloc(total * TOKEN_BYTES, " ");
  const tokens = new Uint32Array(bytes.buffer, bytes.byteOffset, total);
  let at = 0;
  for (const part of parts) {
    const end = at + tokensOf(part);
    if ("text" in part) bytes.write(part.text, at * TOKEN_BYTES);
    else fillMedia(tokens.subarray(at, end), part.media);
    at = end;
  }
  return tokens;
}

function tokensOf(part: PromptPart): number {
  return "text" in part ? Math.ceil(Buffer.byteLength(part.text) / TOKEN_BYTES) : MEDIA_TOKENS;
}

function fillMedia(tokens: Uint32Array, media: string): void {
  const id = digest(tokenize([{ text: media }]));
  for (let i = 0; i < tokens.length; i++) tokens[i] = id + i;
}

/** A number from 0 to 2^32 - 1 that identifies the content. */
export function digest(tokens: Uint32Array): number {
  let hash = 0x811c9dc5;
  for (const token of tokens) hash = mixed(hash, token);
  return hash >>> 0;
}

/**
 * The hash chain over the full blocks of prompt and output. Equal hash means equal tokens from the start to
 * that block's end, within one `scope` (model and cache salt). Two lanes make 52 bits: among the some
 * 100,000 blocks of a cache, a collision has a probability near 1e-6.
 */
export function blockHashes(prompt: Uint32Array, output: Uint32Array, scope: string): number[] {
  const root = digest(tokenize([{ text: scope }]));
  const hashes = new Array<number>(Math.floor((prompt.length + output.length) / BLOCK_TOKENS));
  let low = root;
  let high = ~root;
  for (let block = 0, at = 0; block < hashes.length; block++) {
    for (const end = at + BLOCK_TOKENS; at < end; at++) {
      const token = (at < prompt.length ? prompt[at] : output[at - prompt.length]) as number;
      low = mixed(low, token);
      high = Math.imul(high ^ token, 0x5bd1e995) + (high >>> 15);
    }
    hashes[block] = (high >>> 12) * 2 ** 32 + (low >>> 0);
  }
  return hashes;
}

function mixed(hash: number, token: number): number {
  const product = Math.imul(hash ^ token, 0x85ebca6b);
  return product ^ (product >>> 13);
}
