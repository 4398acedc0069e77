import type { Candidate, RequestProfile, RoutedEvent } from "../../core/index.ts";
import { PrefixIndex } from "./prefix-index.ts";

/** Where a rule gets its idea of the prefix caches from. */
export interface PrefixKnowledge {
  /** Prompt tokens that the candidate need not compute: never the last one. */
  cachedTokens(request: RequestProfile, candidate: Candidate): number;
  /** Absent: it learns nothing from what is sent. */
  routed?(event: RoutedEvent): void;
}

/** The balancer's own mirror of each endpoint's cache. */
export const mirrored: PrefixKnowledge = {
  cachedTokens: (request, candidate) => candidate.cachedTokens(request),
};

/**
 * An index of the peer's own: what it sent where, as large as the endpoint's KV cache, least recently used first to
 * go.
 */
export class OwnIndexes implements PrefixKnowledge {
  readonly #indexes = new Map<string, PrefixIndex>();
  readonly #empty = new PrefixIndex(undefined);

  /** Prompt tokens that match what was sent to the candidate. */
  matchedTokens({ prefix }: RequestProfile, candidate: Candidate): number {
    return prefix === undefined ? 0 : this.of(candidate).matchedTokens(prefix);
  }

  /** Share of the prompt that matches, 0 to 1. */
  matchedShare(request: RequestProfile, candidate: Candidate): number {
    const matchedTokens = this.matchedTokens(request, candidate);
    return matchedTokens === 0 ? 0 : Math.min(1, matchedTokens / request.promptTokens);
  }

  cachedTokens(request: RequestProfile, candidate: Candidate): number {
    return Math.max(0, Math.min(this.matchedTokens(request, candidate), request.promptTokens - 1));
  }

  /** The index of one endpoint; an empty one where nothing was sent. */
  of({ endpoint }: Candidate): PrefixIndex {
    return this.#indexes.get(endpoint.id) ?? this.#empty;
  }

  routed({ request: { prefix }, chosen }: RoutedEvent): void {
    if (prefix === undefined) return;
    const { id } = chosen.endpoint;
    let index = this.#indexes.get(id);
    if (index === undefined) {
      index = new PrefixIndex(chosen.kvCapacityTokens);
      this.#indexes.set(id, index);
    } else if (chosen.kvCapacityTokens !== undefined && chosen.kvCapacityTokens !== index.capacityTokens) {
      index.resize(chosen.kvCapacityTokens);
    }
    index.insert(prefix);
  }
}

/** Prompt tokens that the candidate would have to compute. */
export function uncachedTokens(knowledge: PrefixKnowledge, request: RequestProfile, candidate: Candidate): number {
  return request.promptTokens - knowledge.cachedTokens(request, candidate);
}
