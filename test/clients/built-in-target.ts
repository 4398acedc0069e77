import { createEngineServer, type EngineServer } from "../../src/engine/index.ts";
import { startServer } from "../../src/gateway/index.ts";
import { testConfig } from "../support/test-config.ts";
import type { ClientTarget } from "./client-target.ts";

/** The balancer in front of one built-in engine, both in this process. */
export interface BuiltInTarget extends ClientTarget {
  /** For its faults. */
  readonly engine: EngineServer;
  close(): Promise<void>;
}

export const MODEL = "keel-1b";

/** @param options Of the engine, where they differ from a fast one on a free port. */
export async function startBuiltInTarget(
  options: Parameters<typeof createEngineServer>[0] = {},
): Promise<BuiltInTarget> {
  const engine = createEngineServer({ listen: "127.0.0.1:0", model: MODEL, speed: 20, ...options });
  const { url } = await engine.listen();
  const server = await startServer(testConfig([url]));
  const [pool] = server.runtime.pools;
  return {
    engine,
    url: server.listenUrl,
    model: MODEL,
    untilLimit: { ignore_eos: true },
    openWork: async () =>
      (pool?.balancer.members ?? []).reduce((sum, { account }) => sum + account.requests + account.contextTokens, 0),
    close: async () => {
      await server.close();
      await engine.close();
    },
  };
}
