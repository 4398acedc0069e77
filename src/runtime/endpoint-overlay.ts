import type { EndpointConfig } from "../config/index.ts";

/** What an overlay holds, as it goes elsewhere. */
export interface EndpointChanges {
  /** In the order in which they were put. */
  readonly given: readonly EndpointConfig[];
  readonly removed: readonly string[];
  readonly weights: ReadonlyMap<string, number>;
  readonly drained: readonly string[];
}

/**
 * What was changed in a pool's endpoints while it ran, over what its configuration and its discovery say. It outlives
 * every reload: a file that is read again does not undo what an operator did meanwhile.
 */
export class EndpointOverlay {
  /** Added or replaced, by id. */
  readonly #given = new Map<string, EndpointConfig>();
  readonly #removed = new Set<string>();
  readonly #weights = new Map<string, number>();
  readonly #drained = new Set<string>();

  get changes(): EndpointChanges {
    return {
      given: [...this.#given.values()],
      removed: [...this.#removed],
      weights: new Map(this.#weights),
      drained: [...this.#drained],
    };
  }

  /** Holds this from now on, and nothing else. */
  take({ given, removed, weights, drained }: EndpointChanges): void {
    for (const kept of [this.#given, this.#removed, this.#weights, this.#drained]) kept.clear();
    for (const endpoint of given) this.#given.set(endpoint.id, endpoint);
    for (const id of removed) this.#removed.add(id);
    for (const [id, weight] of weights) this.#weights.set(id, weight);
    for (const id of drained) this.#drained.add(id);
  }

  /** Adds the endpoint, or takes the place of the one with its id, which stays drained if it was. */
  put(endpoint: EndpointConfig): void {
    this.#removed.delete(endpoint.id);
    this.#weights.delete(endpoint.id);
    this.#given.set(endpoint.id, endpoint);
  }

  /** Whatever else was said of the endpoint goes with it. */
  remove(endpointId: string): void {
    this.#given.delete(endpointId);
    this.#weights.delete(endpointId);
    this.#drained.delete(endpointId);
    this.#removed.add(endpointId);
  }

  weigh(endpointId: string, weight: number): void {
    this.#weights.set(endpointId, weight);
  }

  drain(endpointId: string, isDraining: boolean): void {
    if (isDraining) this.#drained.add(endpointId);
    else this.#drained.delete(endpointId);
  }

  isDrained(endpointId: string): boolean {
    return this.#drained.has(endpointId);
  }

  /**
   * The endpoints that there are, given those that are `listed`, each source in its order. Of two with the same id or
   * the same URL the first stays, after what was put in its place: one server is never two endpoints.
   */
  over(listed: readonly EndpointConfig[]): readonly EndpointConfig[] {
    const ids = new Set<string>();
    const urls = new Set<string>();
    const all = [...listed.map((endpoint) => this.#given.get(endpoint.id) ?? endpoint), ...this.#given.values()];
    const kept: EndpointConfig[] = [];
    for (const endpoint of all) {
      const { id, url } = endpoint;
      if (this.#removed.has(id) || ids.has(id) || urls.has(url)) continue;
      ids.add(id);
      urls.add(url);
      const weight = this.#weights.get(id);
      kept.push(weight === undefined ? endpoint : { ...endpoint, weight });
    }
    return kept;
  }
}
