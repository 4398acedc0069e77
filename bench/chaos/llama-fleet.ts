import { LLAMA_MODEL, LlamaServer } from "../../test/engines/harness/llama-server.ts";
import type { VictimEngine } from "../support/victim-engines.ts";

/** More than the clients send to one at a time would hide what a full engine does; fewer than they send starves it. */
const SLOTS = 4;

/** Real llama.cpp servers with a tiny model, running: they are installed where they are missing. */
export async function llamaEngines(count: number): Promise<VictimEngine[]> {
  const servers = await LlamaServer.startSeveral(count, { slots: SLOTS });
  const ending = new Set<LlamaServer>();
  return servers.map((server, index) => ({
    id: `llama${index + 1}`,
    url: server.url,
    start: async () => {
      // One that was told to end closes its port at once and lives on for its streams, perhaps for ever.
      if (ending.delete(server)) await server.kill();
      if (!server.process.isRunning) await server.start();
    },
    kill: () => server.process.signal("SIGKILL"),
    terminate: () => {
      ending.add(server);
      server.process.signal("SIGTERM");
    },
    freeze: () => server.process.signal("SIGSTOP"),
    thaw: () => server.process.signal("SIGCONT"),
    stop: () => server.kill(),
  }));
}

export const LLAMA_FLEET_MODEL: string = LLAMA_MODEL;
