import { type Prefix, PrefixHasher, type TextRoom } from "../../core/index.ts";
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

/** Several prompts of ordinary length; still near at hand for the processor. A multiple of a block's bytes. */
const ROOM_BYTES = 16 * 1024;

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
        text.add(textOfIds(part.ids));
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

/** Prompts are hashed one after the other, so that one room serves all. */
const ROOM = createTextRoom();

function createTextRoom(): TextRoom {
  const bytes = Buffer.allocUnsafeSlow(ROOM_BYTES);
  const units = new Uint16Array(bytes.buffer);
  return {
    words: new Int32Array(bytes.buffer),
    put(text, at) {
      // One call for all of it takes a tenth of reading it unit by unit, but for the call itself.
      if (text.length > SHORT_UNITS) bytes.write(text, 2 * at, "utf16le");
      else for (let i = 0; i < text.length; i++) units[at + i] = text.charCodeAt(i);
    },
  };
}

/** Where both ways of copying take equally long. */
const SHORT_UNITS = 32;

/** Feeds the hasher up to the bound and keeps count of what it left out. */
class BoundedText {
  readonly #hasher: PrefixHasher;
  #room = MAX_HASHED_UNITS;
  #hashedUnits = 0;
  #allUnits = 0;

  constructor(scope: readonly (string | undefined)[]) {
    this.#hasher = new PrefixHasher(scope, ROOM);
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
    at += GOLDEN_RATIO;
    if (at >= 1) at -= 1;
  }
  return Buffer.from(units.buffer).toString("utf16le");
}

const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

/** Each id as the two units of a word. */
function textOfIds(ids: readonly number[]): string {
  return Buffer.from(new Int32Array(ids).buffer).toString("utf16le");
}
