import { FirstBlocks } from "./first-blocks.ts";
import { HashSlots } from "./hash-slots.ts";
import type { EvictionVisitor } from "./policy.ts";
import type { Prefix } from "./prefix-hash.ts";
import type { ReuseOdds } from "./reuse-odds.ts";

/** A request's blocks in a mirror, from being sent there to its end. */
export interface Stay {
  readonly hashes: readonly number[];
  /** Leading blocks of the prompt that it holds; all but of a prompt that is longer than the cache. */
  readonly blocks: number;
  /** Prompt tokens behind its last block. */
  readonly tailTokens: number;
  /** Which life of the cache it belongs to. */
  readonly life: number;
}

/**
 * What one engine's KV cache holds, as far as a proxy can tell: it imitates the engine. Blocks of requests in flight
 * stay; at its end a request's blocks become evictable, its output and the prompt's tail first, then deep blocks
 * before shallow ones, as vLLM frees them (docs/policies/least_delay.md). A block is in the mirror from the moment
 * its request is sent: who comes after it waits behind it and finds it.
 */
export class KvMirror {
  readonly #reuse: ReuseOdds;
  readonly #firstBlocks: FirstBlocks;
  /** Its own in there; none outside the pool. */
  #column: number;
  readonly #slots = new HashSlots();
  /** By slot. */
  #users = new Int32Array(0);
  /** 1: the engine computed the block for somebody; 0: those who are to have it computed are still in flight. */
  #isComputed = new Uint8Array(0);
  #blockTokens = new Int32Array(0);
  #startTokens = new Int32Array(0);
  #usedAtMs = new Float64Array(0);
  /** Neighbours among the evictable, in order of release. */
  #older = new Int32Array(0);
  #newer = new Int32Array(0);
  #oldest = NONE;
  #newest = NONE;
  #evictableTokens = 0;
  #sharedTokens = 0;
  #capacityTokens: number | undefined;
  #anonymous = 0;
  #life = 0;

  /** @param capacityTokens Size of the endpoint's KV cache; undefined: unknown, a small one is assumed. */
  constructor(capacityTokens: number | undefined, reuse: ReuseOdds, firstBlocks: FirstBlocks = new FirstBlocks()) {
    this.#capacityTokens = capacityTokens;
    this.#reuse = reuse;
    this.#firstBlocks = firstBlocks;
    this.#column = firstBlocks.take();
  }

  /** Blocks held; what outputs and tails left behind counts one each. */
  get size(): number {
    return this.#slots.size;
  }

  /** Tokens that nobody in flight uses. */
  get evictableTokens(): number {
    return this.#evictableTokens;
  }

  /** Prompt tokens that requests in flight share: counted once for each of them but the first. */
  get sharedTokens(): number {
    return this.#sharedTokens;
  }

  resize(capacityTokens: number | undefined): void {
    this.#capacityTokens = capacityTokens;
  }

  /** Prompt tokens that match from the start. Logarithmic in the prompt: what holds a block holds all before it. */
  matchedTokens({ hashes, tokensPerBlock }: Prefix): number {
    if (!this.#firstBlocks.mayHold(hashes[0] as number, this.#column)) return 0;
    return Math.floor(this.#slots.leadOf(hashes, hashes.length) * tokensPerBlock);
  }

  /** A request is sent there: its blocks stay until `leave`. */
  enter(prefix: Prefix | undefined, promptTokens: number, nowMs: number): Stay {
    const hashes = prefix?.hashes ?? [];
    const blockTokens = Math.max(MIN_BLOCK_TOKENS, Math.round(prefix?.tokensPerBlock ?? MIN_BLOCK_TOKENS));
    const blocks = Math.min(hashes.length, Math.floor(this.#cacheTokens() / blockTokens));
    const weight = 1 / blocks;
    let slot = NONE;
    for (let depth = 0; depth < blocks; depth++) {
      const hash = hashes[depth] as number;
      slot = this.#slots.slotNear(hash, slot + 1);
      if (slot === NONE) slot = this.#add(hash, 1, blockTokens, depth * blockTokens);
      else this.#use(slot, weight, nowMs);
    }
    const tailTokens = Math.max(0, promptTokens - blocks * blockTokens);
    return { hashes, blocks, tailTokens, life: this.#life };
  }

  /**
   * Its request is over. `isComputed`: the engine got as far as the end of its prompt; otherwise only the blocks that
   * it did for another request are sure to be there.
   */
  leave(stay: Stay, generatedTokens: number, isComputed: boolean, nowMs: number): void {
    if (stay.life !== this.#life) return;
    const { hashes, blocks, tailTokens } = stay;
    if (isComputed) this.#leaveBehind(tailTokens + generatedTokens, nowMs);
    let slot = NONE;
    for (let depth = blocks - 1; depth >= 0; depth--) {
      slot = this.#slots.slotNear(hashes[depth] as number, slot - 1);
      const users = (this.#users[slot] as number) - 1;
      this.#users[slot] = users;
      if (isComputed) this.#isComputed[slot] = 1;
      if (users > 0) this.#sharedTokens -= this.#blockTokens[slot] as number;
      else if (this.#isComputed[slot] === 0) this.#remove(slot);
      else this.#release(slot, 1 / blocks, nowMs);
    }
  }

  /** Lets go of what has no room beside `usedTokens` of requests in flight. */
  trim(usedTokens: number): void {
    const room = Math.max(0, this.#cacheTokens() - usedTokens);
    while (this.#evictableTokens > room) {
      const slot = this.#oldest;
      const excess = Math.ceil(this.#evictableTokens - room);
      // Only as much of what an output left as must go: the engine frees it block by block too.
      if (this.#isAnonymous(slot) && (this.#blockTokens[slot] as number) > excess) this.#shrink(slot, excess);
      else this.#evict(slot);
    }
  }

  /** What is left of the cache beside `usedTokens` in flight and what is evictable; unknown size: infinite. */
  #spareTokens(usedTokens: number): number {
    return (this.#capacityTokens ?? Number.POSITIVE_INFINITY) - usedTokens - this.#evictableTokens;
  }

  /** Visits what would go, least recently used first, if `tokens` more came beside `usedTokens` in flight. */
  visitEvicted(tokens: number, usedTokens: number, nowMs: number, visit: EvictionVisitor): void {
    let missing = tokens - this.#spareTokens(usedTokens);
    for (let slot = this.#oldest; slot !== NONE && missing > 0; slot = this.#newer[slot] as number) {
      const blockTokens = this.#blockTokens[slot] as number;
      if (!this.#isAnonymous(slot)) {
        const usesToCome = this.#reuse.usesToCome(nowMs - (this.#usedAtMs[slot] as number));
        visit(blockTokens, this.#startTokens[slot] as number, usesToCome);
      }
      missing -= blockTokens;
    }
  }

  /** Its endpoint left the pool: it is asked for no prompt any more. */
  leavePool(): void {
    this.#firstBlocks.giveBack(this.#column);
    this.#column = NONE;
  }

  /** Its endpoint is back, with a cache of which nobody knows what is left. */
  rejoinPool(): void {
    this.#column = this.#firstBlocks.take();
    this.clear();
  }

  /** The engine restarted or dropped its cache. */
  clear(): void {
    this.#slots.clear();
    if (this.#column !== NONE) this.#firstBlocks.clear(this.#column);
    this.#oldest = NONE;
    this.#newest = NONE;
    this.#evictableTokens = 0;
    this.#sharedTokens = 0;
    this.#life++;
  }

  #cacheTokens(): number {
    return this.#capacityTokens ?? DEFAULT_CAPACITY_TOKENS;
  }

  #use(slot: number, weight: number, nowMs: number): void {
    const users = this.#users[slot] as number;
    this.#users[slot] = users + 1;
    if (users > 0) {
      this.#sharedTokens += this.#blockTokens[slot] as number;
      return;
    }
    this.#reuse.returned(nowMs - (this.#usedAtMs[slot] as number), weight);
    this.#unlink(slot);
  }

  #release(slot: number, weight: number, nowMs: number): void {
    this.#reuse.released(weight);
    this.#link(slot, nowMs);
  }

  /** Output and tail take room until they are evicted, though no other prompt can find them. */
  #leaveBehind(tokens: number, nowMs: number): void {
    if (tokens > 0) this.#link(this.#add(--this.#anonymous, 0, tokens, 0), nowMs);
  }

  #isAnonymous(slot: number): boolean {
    return this.#slots.hashAt(slot) < 0;
  }

  /** Whether it is a first block that others are to find. */
  #isCounted(slot: number): boolean {
    return this.#startTokens[slot] === 0 && !this.#isAnonymous(slot) && this.#column !== NONE;
  }

  #add(hash: number, users: number, blockTokens: number, startTokens: number): number {
    const slot = this.#slots.add(hash);
    if (slot >= this.#older.length) this.#grow();
    this.#users[slot] = users;
    this.#isComputed[slot] = 0;
    this.#blockTokens[slot] = blockTokens;
    this.#startTokens[slot] = startTokens;
    if (this.#isCounted(slot)) this.#firstBlocks.add(hash, this.#column);
    return slot;
  }

  #evict(slot: number): void {
    this.#unlink(slot);
    this.#remove(slot);
  }

  #remove(slot: number): void {
    if (this.#isCounted(slot)) this.#firstBlocks.remove(this.#slots.hashAt(slot), this.#column);
    this.#slots.remove(slot);
  }

  #shrink(slot: number, tokens: number): void {
    this.#blockTokens[slot] = (this.#blockTokens[slot] as number) - tokens;
    this.#evictableTokens -= tokens;
  }

  #link(slot: number, nowMs: number): void {
    this.#usedAtMs[slot] = nowMs;
    this.#evictableTokens += this.#blockTokens[slot] as number;
    this.#older[slot] = this.#newest;
    this.#newer[slot] = NONE;
    if (this.#newest === NONE) this.#oldest = slot;
    else this.#newer[this.#newest] = slot;
    this.#newest = slot;
  }

  #unlink(slot: number): void {
    const older = this.#older[slot] as number;
    const newer = this.#newer[slot] as number;
    if (older === NONE) this.#oldest = newer;
    else this.#newer[older] = newer;
    if (newer === NONE) this.#newest = older;
    else this.#older[newer] = older;
    this.#evictableTokens -= this.#blockTokens[slot] as number;
  }

  #grow(): void {
    const { capacity } = this.#slots;
    this.#users = enlarged(this.#users, capacity);
    const isComputed = new Uint8Array(capacity);
    isComputed.set(this.#isComputed);
    this.#isComputed = isComputed;
    this.#blockTokens = enlarged(this.#blockTokens, capacity);
    this.#startTokens = enlarged(this.#startTokens, capacity);
    this.#older = enlarged(this.#older, capacity);
    this.#newer = enlarged(this.#newer, capacity);
    const usedAtMs = new Float64Array(capacity);
    usedAtMs.set(this.#usedAtMs);
    this.#usedAtMs = usedAtMs;
  }
}

function enlarged(values: Int32Array<ArrayBuffer>, length: number): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(length);
  larger.set(values);
  return larger;
}

/** In place of a slot. */
const NONE = -1;

/** A 40 GB accelerator with an 8B model; too small only costs hits, too large promises some that are gone. */
const DEFAULT_CAPACITY_TOKENS = 131_072;

/** An engine's own block. Text of 256 units is never this little in truth; it bounds the mirror when a count is wrong. */
const MIN_BLOCK_TOKENS = 16;
