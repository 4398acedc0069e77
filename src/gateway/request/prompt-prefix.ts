import { type Prefix, PrefixHasher } from "../../core/index.ts";
import { splitDataUrls } from "./data-url.ts";
import type { PromptPart } from "./prompt-part.ts";
import { TOKENS_PER_MEDIA_ITEM } from "./prompt-size.ts";

/**
 * Most text hashed, in UTF-16 units: half a million tokens of English for some milliseconds of work. What lies
 * deeper is not matched: two prompts that agree so far are worth sending the same way already.
 */
const MAX_HASHED_UNITS = 2_097_152;

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
        for (const piece of splitDataUrls(part.text)) {
          if (piece.isDataUrl) text.addMedia(piece.text);
          else text.add(piece.text);
        }
        break;
      case "tokens":
        for (const chunk of idChunks(part.ids)) text.add(chunk);
        break;
      case "media":
        text.addMedia(part.source);
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

  addMedia(source: string): void {
    if (this.#room > 0) this.add(sampleMedia(source));
    else this.#allUnits += UNITS_PER_MEDIA_ITEM;
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
 * Samples an item's data: enough to tell items apart, whatever their size. Steps of the golden ratio spread any run
 * of samples over the whole, so items that differ somewhere differ from their first block on. The length goes first.
 */
function sampleMedia(source: string): string {
  const units = new Uint16Array(UNITS_PER_MEDIA_ITEM);
  units[0] = source.length;
  units[1] = source.length >>> 16;
  let at = 0;
  for (let i = 2; i < UNITS_PER_MEDIA_ITEM; i++) {
    units[i] = source.charCodeAt(Math.floor(at * source.length));
    at = (at + GOLDEN_RATIO) % 1;
  }
  return Buffer.from(units.buffer).toString("utf16le");
}

const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

function* idChunks(ids: readonly number[]): Generator<string> {
  for (let start = 0; start < ids.length; start += IDS_PER_STRING) {
    const chunk = ids.slice(start, start + IDS_PER_STRING);
    yield String.fromCharCode(...chunk.flatMap((id) => [id & 0xffff, id >>> 16]));
  }
}
