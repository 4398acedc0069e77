import { Balancer, type BalancerOptions, type RequestProfile } from "../core/index.ts";
import type { EngineRequest } from "./engine-model.ts";

/** One balancer of a simulation, with what a gateway adds to it. */
export class Replica {
  readonly balancer: Balancer;
  /** Where its wake stands on the agenda. */
  readonly wakeSource: number;
  /** Something happened that may have changed when it is to be woken. */
  isTouched = false;

  constructor(options: BalancerOptions, wakeSource: number) {
    this.balancer = new Balancer(options);
    this.wakeSource = wakeSource;
  }

  /** What a proxy knows of a request: its prompt to the token, of its answer only what was learned from others. */
  profileOf(sessionKey: string | undefined, request: EngineRequest, blockTokens: number): RequestProfile {
    const { promptTokens, blockHashes } = request;
    return {
      model: MODEL,
      route: ROUTE,
      promptTokens,
      textBytes: undefined,
      maxOutputTokens: undefined,
      output: this.balancer.outputLengths.expect(OUTPUT_KEY),
      isStreaming: true,
      prefix: blockHashes.length === 0 ? undefined : { hashes: blockHashes, tokensPerBlock: blockTokens },
      sessionKey,
      tenant: undefined,
      priority: "normal",
      patienceMs: undefined,
    };
  }
}

/** A fleet serves one model by one API. */
const MODEL = "simulated";
const ROUTE = "chat";
const OUTPUT_KEY = { model: MODEL, route: ROUTE, maxOutputTokens: undefined };
