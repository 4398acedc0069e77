import { type Prefix, PrefixHasher } from "../core/index.ts";
import { splitDataUrls } from "./data-url.ts";
import type { PromptPart } from "./prompt-part.ts";
import { TOKENS_PER_MEDIA_ITEM } from "./prompt-size.ts";

/**
 * Most text hashed, in UTF-16 units: a million tokens of English, as long as any engine's context, and some
 * milliseconds of work. What lies deeper is not matched.
 */
const MAX_HASHED_UNITS = 4_194_304;

/** English runs at about 4 units a token; an item of media fills the chain with as many as its tokens would. */
const UNITS_PER_MEDIA_ITEM = TOKENS_PER_MEDIA_ITEM * 4;

/** A token id is two units: ids pass 65535. */
const IDS_PER_STRING = 4096;

/**
 * Hashes a prompt's parts in order, roles included, so that the next turn of a conversation starts with the
 * hashes of this one. Stops at a part of unknown shape: what follows it cannot be told apart.
 * @param scope What keeps caches apart: model, adapter, salt.
 */
export function hashPrompt(
  parts: readonly PromptPart[],
  scope: readonly (string | undefined)[],
  promptTokens: number,
): Prefix | undefined {
  const text = new BoundedText(scope);
  for (const part of parts) {
    switch (part.kind) {
      case "turn":
        text.add(part.role);
        break;
      case "text":
        for (const piece of splitDataUrls(part.text)) text.add(piece.isDataUrl ? sampleMedia(piece.text) : piece.text);
        break;
      case "tokens":
        for (const chunk of idChunks(part.ids)) text.add(chunk);
        break;
      case "media":
        text.add(sampleMedia(part.source));
        break;
      case "unknown":
        text.stop();
        break;
    }
  }
  return text.finish(promptTokens);
}

/** Feeds the hasher up to the bound and keeps count of what it left out. */
class BoundedText {
  readonly #hasher: PrefixHasher;
  #room = MAX_HASHED_UNITS;
  #hashedUnits = 0;
  #allUnits = 0;

  constructor(scope: readonly (string | undefined)[]) {
    this.#hasher = new PrefixHasher(scope);
  }

  add(text: string): void {
    this.#allUnits += text.length;
    if (this.#room <= 0) return;
    const taken = text.length <= this.#room ? text : text.slice(0, this.#room);
    this.#hasher.update(taken);
    this.#room -= taken.length;
    this.#hashedUnits += taken.length;
  }

  stop(): void {
    this.#room = 0;
  }

  /** Tokens are spread evenly over the text; the hashed part gets its share. */
  finish(promptTokens: number): Prefix | undefined {
    return this.#hashedUnits === 0
      ? undefined
      : this.#hasher.finish((promptTokens * this.#hashedUnits) / this.#allUnits);
  }
}

/**
 * Evenly spaced units of an item's data: enough to tell items apart, whatever their size. The length goes first,
 * for data that agrees at every sample.
 */
function sampleMedia(source: string): string {
  const step = source.length / UNITS_PER_MEDIA_ITEM;
  const units = new Uint16Array(UNITS_PER_MEDIA_ITEM);
  units[0] = source.length;
  units[1] = source.length >>> 16;
  for (let i = 2; i < UNITS_PER_MEDIA_ITEM; i++) units[i] = source.charCodeAt(Math.floor(i * step));
  return String.fromCharCode(...units);
}

function* idChunks(ids: readonly number[]): Generator<string> {
  for (let start = 0; start < ids.length; start += IDS_PER_STRING) {
    const chunk = ids.slice(start, start + IDS_PER_STRING);
    yield String.fromCharCode(...chunk.flatMap((id) => [id & 0xffff, id >>> 16]));
  }
}
