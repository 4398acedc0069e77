import { LlamaServer, type LlamaServerOptions } from "./llama-server.ts";
import { Serve } from "./serve.ts";

/** Llama.cpp servers with the balancer in front of them. */
export interface BalancedLlama {
  readonly engines: readonly LlamaServer[];
  readonly serve: Serve;
  stop(): Promise<void>;
}

/** What differs from two tiny servers under the default policy. */
export interface BalancedLlamaOptions extends LlamaServerOptions {
  readonly count?: number;
  /** Of `evenkeel serve`. */
  readonly flags?: readonly string[];
}

export async function startBalancedLlama({
  count = 2,
  flags = [],
  ...options
}: BalancedLlamaOptions = {}): Promise<BalancedLlama> {
  const engines = await LlamaServer.startSeveral(count, options);
  const serve = await Serve.start(
    engines.map(({ url }) => url),
    flags,
  );
  const stop = async (): Promise<void> => {
    // Engines first: `serve` waits for requests in flight, and one may hang in an engine that a test has frozen.
    for (const engine of engines) await engine.kill();
    await serve.stop();
  };
  return { engines, serve, stop };
}
