import type { Replica } from "./replica.ts";

/** Says which replica gets a request, as whatever stands before the balancers would. */
export class ReplicaDealer {
  readonly #replicas: readonly Replica[];
  readonly #isBySession: boolean;
  #turn = 0;

  constructor(replicas: readonly Replica[], dealing: "in_turn" | "by_session") {
    if (replicas.length === 0) throw new RangeError("a simulation has at least one balancer");
    this.#replicas = replicas;
    this.#isBySession = dealing === "by_session";
  }

  /** Requests without a session go to each in turn, however dealing is. */
  next(sessionKey: string | undefined): Replica {
    const place = this.#isBySession && sessionKey !== undefined ? hash(sessionKey) : this.#turn++;
    return this.#replicas[place % this.#replicas.length] as Replica;
  }
}

/** FNV-1a over UTF-16 units: spread well enough for a handful of replicas. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) state = Math.imul(state ^ text.charCodeAt(i), 0x01000193);
  return state >>> 0;
}
