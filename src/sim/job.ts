import type { Lease, RequestProfile } from "../core/index.ts";
import type { EngineRequest } from "./engine-model.ts";
import type { Replica } from "./replica.ts";
import type { RequestRecord } from "./result.ts";
import type { SimulatedEndpoint } from "./simulated-endpoint.ts";
import type { WorkloadRequest } from "./workload/workload.ts";

/** What is noted of a request while it goes its way; what is left of it in the end. */
export class Journey implements RequestRecord {
  readonly arrivedAtMs: number;
  sentAtMs: number | undefined;
  firstTokenAtMs: number | undefined;
  endedAtMs: number | undefined;
  readonly promptTokens: number;
  readonly outputTokens: number;
  cachedTokens = 0;
  endpoint: string | undefined;
  readonly tenant: string | undefined;

  constructor(arrivedAtMs: number, request: WorkloadRequest) {
    this.arrivedAtMs = arrivedAtMs;
    this.promptTokens = promptTokensOf(request);
    this.outputTokens = outputTokensOf(request);
    this.tenant = request.tenant;
  }
}

/** A request between its arrival and its end; the engine's view of it and the balancer's. */
export class Job implements EngineRequest {
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly blockHashes: readonly number[];
  readonly source: WorkloadRequest;
  readonly journey: Journey;
  /** Who decides on it. */
  readonly replica: Replica;
  readonly profile: RequestProfile;
  /** Ids of the endpoints that failed it. */
  tried: readonly string[] = [];
  /** Undefined: it is not at an endpoint. */
  lease: Lease | undefined;
  endpoint: SimulatedEndpoint | undefined;
  /** Output tokens the balancer was told of. */
  toldTokens = 0;

  constructor(source: WorkloadRequest, journey: Journey, replica: Replica, blockTokens: number) {
    const { blockIds } = source;
    const fullBlocks = Math.floor(source.promptTokens / blockTokens);
    this.promptTokens = journey.promptTokens;
    this.outputTokens = journey.outputTokens;
    // A block that is partly prompt has no identity: what fills the rest is different each time.
    this.blockHashes = blockIds.length <= fullBlocks ? blockIds : blockIds.slice(0, fullBlocks);
    this.source = source;
    this.journey = journey;
    this.replica = replica;
    this.profile = replica.profileOf(source.sessionKey, this, blockTokens);
  }
}

/** Chat templates alone make more than none. */
export function promptTokensOf({ promptTokens }: WorkloadRequest): number {
  return Math.max(1, promptTokens);
}

/** An answer has one token at least, if only its end. */
export function outputTokensOf({ outputTokens }: WorkloadRequest): number {
  return Math.max(1, outputTokens);
}
