import type { DiscoverySource, EndpointConfig } from "../../config/index.ts";
import { isSameValue } from "../same-value.ts";
import { createEndpointSource, type EndpointSource, placeOf, type SourceSurroundings } from "./endpoint-source.ts";

interface Followed {
  readonly config: DiscoverySource;
  readonly source: EndpointSource;
  /** As found last; shared with the source that this one takes the place of. */
  readonly found: { endpoints: readonly EndpointConfig[] };
}

/** All that is discovered for one pool. */
export class PoolDiscovery {
  readonly #surroundings: SourceSurroundings;
  readonly #changed: () => void;
  #followed: ReadonlyMap<string, Followed> = new Map();
  #isRunning = false;

  /** @param changed Is called when other endpoints were found than before. */
  constructor(surroundings: SourceSurroundings, changed: () => void) {
    this.#surroundings = surroundings;
    this.#changed = changed;
  }

  /** As found last, source by source. */
  get endpoints(): readonly EndpointConfig[] {
    return [...this.#followed.values()].flatMap(({ found }) => found.endpoints);
  }

  /** Looks in these places from now on. What was found in one that stays counts on. */
  follow(sources: readonly DiscoverySource[]): void {
    const before = this.#followed;
    this.#followed = new Map(sources.map((config) => [placeOf(config), this.#follow(config, before)]));
    for (const [place, { source }] of before) {
      if (this.#followed.get(place)?.source !== source) void source.stop();
    }
  }

  start(): void {
    this.#isRunning = true;
    for (const { source } of this.#followed.values()) source.start();
  }

  /** For good. What was found stays. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    await Promise.all([...this.#followed.values()].map(({ source }) => source.stop()));
  }

  #follow(config: DiscoverySource, before: ReadonlyMap<string, Followed>): Followed {
    const known = before.get(placeOf(config));
    if (known !== undefined && isSameValue(known.config, config)) return known;
    const followed = this.#create(config, known?.found ?? { endpoints: [] });
    if (this.#isRunning) followed.source.start();
    return followed;
  }

  #create(config: DiscoverySource, found: Followed["found"]): Followed {
    const source = createEndpointSource(config, this.#surroundings, (endpoints) => {
      if (isSameValue(found.endpoints, endpoints)) return;
      found.endpoints = endpoints;
      this.#changed();
    });
    return { config, source, found };
  }
}
