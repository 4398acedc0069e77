import type { Prefix } from "../../src/core/index.ts";

export interface ListBlock {
  /** Undefined: what an output or a tail left. */
  readonly hash: number | undefined;
  tokens: number;
  users: number;
  isComputed: boolean;
}

export interface ListStay {
  readonly blocks: readonly ListBlock[];
  readonly tailTokens: number;
  readonly life: number;
}

/** The rules of `KvMirror` in lists, with nothing kept that can be counted. */
export class ListMirror {
  capacityTokens: number;
  /** Blocks of prompts, in flight or idle. */
  #blocks: ListBlock[] = [];
  /** What nobody uses, in order of release. */
  idle: ListBlock[] = [];
  #life = 0;

  constructor(capacityTokens: number) {
    this.capacityTokens = capacityTokens;
  }

  get size(): number {
    return this.#blocks.length + this.idle.filter(({ hash }) => hash === undefined).length;
  }

  get evictableTokens(): number {
    return this.idle.reduce((sum, { tokens }) => sum + tokens, 0);
  }

  get sharedTokens(): number {
    return this.#blocks.reduce((sum, { tokens, users }) => sum + tokens * Math.max(0, users - 1), 0);
  }

  matchedBlocks({ hashes }: Prefix): number {
    const missing = hashes.findIndex((hash) => this.#find(hash) === undefined);
    return missing < 0 ? hashes.length : missing;
  }

  enter({ hashes, tokensPerBlock }: Prefix, promptTokens: number): ListStay {
    const held = hashes.slice(0, Math.floor(this.capacityTokens / tokensPerBlock));
    const blocks = held.map((hash) => this.#find(hash) ?? this.#add(hash, tokensPerBlock));
    for (const block of blocks) block.users++;
    this.idle = this.idle.filter(({ users }) => users === 0);
    return { blocks, tailTokens: promptTokens - held.length * tokensPerBlock, life: this.#life };
  }

  leave({ blocks, tailTokens, life }: ListStay, generatedTokens: number, isComputed: boolean): void {
    if (life !== this.#life) return;
    const tokens = tailTokens + generatedTokens;
    if (isComputed && tokens > 0) this.idle.push({ hash: undefined, tokens, users: 0, isComputed });
    for (const block of blocks.toReversed()) {
      block.users--;
      block.isComputed ||= isComputed;
      if (block.users > 0) continue;
      if (block.isComputed) this.idle.push(block);
      else this.#blocks = this.#blocks.filter((other) => other !== block);
    }
  }

  trim(usedTokens: number): void {
    const room = Math.max(0, this.capacityTokens - usedTokens);
    for (let [oldest] = this.idle; oldest !== undefined && this.evictableTokens > room; [oldest] = this.idle) {
      const excess = this.evictableTokens - room;
      if (oldest.hash === undefined && oldest.tokens > excess) oldest.tokens -= excess;
      else {
        this.idle.shift();
        this.#blocks = this.#blocks.filter((other) => other !== oldest);
      }
    }
  }

  clear(): void {
    this.#blocks = [];
    this.idle = [];
    this.#life++;
  }

  #find(hash: number): ListBlock | undefined {
    return this.#blocks.find((block) => block.hash === hash);
  }

  #add(hash: number, tokens: number): ListBlock {
    const block = { hash, tokens, users: 0, isComputed: false };
    this.#blocks.push(block);
    return block;
  }
}
