import type { RequestProfile } from "./request.ts";

/** A request that the balancer keeps: decided again at every event that may make room for it. */
export class Ticket {
  readonly request: RequestProfile;
  /** Ids this request has already failed on. */
  readonly tried: readonly string[];
  readonly heldAtMs: number;
  /** What is kept in memory for it while it is held. */
  readonly bodyBytes: number;
  /** For whoever asked for the decision: what belongs to it there. The balancer does not look at it. */
  holder: object | undefined;
  /** Where it is held; the holding's own. Undefined: nowhere any more. */
  place: HoldingPlace | undefined;

  constructor(request: RequestProfile, tried: readonly string[], heldAtMs: number, bodyBytes: number) {
    this.request = request;
    this.tried = tried;
    this.heldAtMs = heldAtMs;
    this.bodyBytes = bodyBytes;
  }
}

/** A ticket's place in a line. */
export interface HoldingPlace {
  /** The endpoint it is held for; undefined: any, none has room. */
  readonly endpointId: string | undefined;
  /** Its order among those held there. */
  readonly key: number;
  /** Work it will be there. */
  readonly prefillTokens: number;
  readonly prefillPairs: number;
}
