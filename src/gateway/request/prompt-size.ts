import { splitDataUrls } from "./data-url.ts";
import type { PromptPart } from "./prompt-part.ts";

/** How large a prompt is, as far as its body tells. */
export interface PromptSize {
  /** UTF-8 bytes of text: system prompt, tools and messages, without media. */
  readonly textBytes: number;
  /** Tokens given as ids: an exact count. */
  readonly tokenIds: number;
  /** Images, sounds, videos and files. */
  readonly mediaItems: number;
  /** False: part of the prompt has an unknown shape, and `textBytes` is the body's length, bounded. */
  readonly isKnown: boolean;
}

/**
 * Tokens counted for an image, a sound or a file. Their size in bytes says little: engines scale them to a
 * fixed grid. Common costs are 256 (Gemma), 576 (LLaVA), 765 (OpenAI, 1024 x 1024) and about 1600 (Claude);
 * 1000 is within a factor of four of each.
 */
export const TOKENS_PER_MEDIA_ITEM = 1000;

/**
 * Most bytes counted for a prompt of unknown shape: about 16k tokens of English, a long prompt but not one that
 * keeps an endpoint from everyone else, should the bytes turn out to be an image.
 */
const MAX_UNKNOWN_BYTES = 65_536;

/** @param bytesPerToken Learned per model from usage; about 4 for English. */
export function countPromptTokens(size: PromptSize, bytesPerToken: number): number {
  const media = size.mediaItems * TOKENS_PER_MEDIA_ITEM;
  return Math.ceil(size.textBytes / bytesPerToken) + size.tokenIds + media;
}

/** Adds up the parts of one prompt, in time linear in their length. */
export function measurePrompt(parts: readonly PromptPart[], bodyBytes: number): PromptSize {
  let textBytes = 0;
  let tokenIds = 0;
  let mediaItems = 0;
  let isKnown = true;
  for (const part of parts) {
    switch (part.kind) {
      case "text":
        for (const piece of splitDataUrls(part.text)) {
          if (piece.isDataUrl) mediaItems += part.copies ?? 1;
          else textBytes += Buffer.byteLength(piece.text) * (part.copies ?? 1);
        }
        break;
      case "tokens":
        tokenIds += part.ids.length;
        break;
      case "media":
        mediaItems += part.copies ?? 1;
        break;
      case "unknown":
        isKnown = false;
        break;
    }
  }
  if (!isKnown) textBytes = Math.max(textBytes, Math.min(bodyBytes, MAX_UNKNOWN_BYTES));
  return { textBytes, tokenIds, mediaItems, isKnown };
}
