import { takesTraffic } from "../core/index.ts";
import type { ServedPool } from "./served-pool.ts";

/** Where a request for a model goes. */
export interface ModelTarget {
  readonly pool: ServedPool;
  /** The name its endpoints know; differs from the client's for an alias. Empty: the client named none. */
  readonly model: string;
}

/**
 * Which pool answers for which model name. Names come from the configuration and from what the
 * endpoints report; the table is made anew when either changes, so that a look-up is one.
 */
export class ModelDirectory {
  #pools: readonly ServedPool[] = [];
  #targets: ReadonlyMap<string, ModelTarget> = new Map();

  /** Every name clients may use, sorted. */
  get names(): readonly string[] {
    return [...this.#targets.keys()].sort();
  }

  /** Undefined: no endpoint serves it, and none accepts names it does not list. */
  find(name: string | undefined): ModelTarget | undefined {
    if (name === undefined) return this.#anonymous();
    return this.#targets.get(name) ?? this.#openTo(name);
  }

  /** These pools answer from now on; of two with the same model the first. */
  serve(pools: readonly ServedPool[]): void {
    this.#pools = pools;
    this.refresh();
  }

  refresh(): void {
    const targets = new Map<string, ModelTarget>();
    const add = (name: string, target: ModelTarget): void => {
      if (!targets.has(name)) targets.set(name, target);
    };
    for (const pool of this.#pools) {
      for (const model of pool.config.models ?? reportedModels(pool)) add(model, { pool, model });
    }
    // After all models, so that no alias hides one.
    for (const pool of this.#pools) {
      for (const [alias, model] of pool.config.aliases) add(alias, { pool, model });
    }
    this.#targets = targets;
  }

  /** With one pool there is only one place for a request that names no model. */
  #anonymous(): ModelTarget | undefined {
    const [pool, ...others] = this.#pools;
    return pool === undefined || others.length > 0 ? undefined : { pool, model: "" };
  }

  #openTo(name: string): ModelTarget | undefined {
    const pool = this.#pools.find(isOpen);
    return pool === undefined ? undefined : { pool, model: name };
  }
}

/**
 * Until those of a pool's endpoints that take traffic have told their models, any name may be one of theirs. One that
 * is out of reach could not serve it anyway, and so it is asked for only where all are. Endpoints that are still to be
 * found have told nothing either.
 */
function isOpen({ config, balancer }: ServedPool): boolean {
  if (config.models !== undefined) return false;
  if (balancer.members.length === 0) return true;
  const up = balancer.members.filter(({ availability }) => takesTraffic(availability));
  return (up.length > 0 ? up : balancer.members).some(({ models }) => models === undefined);
}

function reportedModels(pool: ServedPool): Iterable<string> {
  return new Set(pool.balancer.members.flatMap(({ models }) => [...(models ?? [])]));
}
