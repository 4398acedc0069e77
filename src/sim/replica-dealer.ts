import type { Random } from "../core/index.ts";
import type { Replica } from "./replica.ts";
import type { ReplicaOptions } from "./simulation-options.ts";

/** Says which replica gets a request, as whatever stands before the balancers would. */
export class ReplicaDealer {
  readonly #replicas: readonly Replica[];
  readonly #dealing: ReplicaOptions["dealing"];
  readonly #random: Random;
  #turn = 0;

  constructor(replicas: readonly Replica[], dealing: ReplicaOptions["dealing"], random: Random) {
    if (replicas.length === 0) throw new RangeError("a simulation has at least one balancer");
    this.#replicas = replicas;
    this.#dealing = dealing;
    this.#random = random;
  }

  /** By session, requests without one go to each in turn. */
  next(sessionKey: string | undefined): Replica {
    return this.#replicas[this.#placeOf(sessionKey) % this.#replicas.length] as Replica;
  }

  #placeOf(sessionKey: string | undefined): number {
    if (this.#dealing === "at_random") return Math.floor(this.#random.next() * this.#replicas.length);
    return this.#dealing === "by_session" && sessionKey !== undefined ? hash(sessionKey) : this.#turn++;
  }
}

/** FNV-1a over UTF-16 units: spread well enough for a handful of replicas. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) state = Math.imul(state ^ text.charCodeAt(i), 0x01000193);
  return state >>> 0;
}
