import { LLAMA_MODEL, LlamaServer } from "../../test/engines/harness/llama-server.ts";
import type { VictimEngine } from "../support/victim-engines.ts";

/** More than the clients send to one at a time would hide what a full engine does; fewer than they send starves it. */
const SLOTS = 4;

/** Real llama.cpp servers with a tiny model, running: they are installed where they are missing. */
export async function llamaEngines(count: number): Promise<VictimEngine[]> {
  const servers = await LlamaServer.startSeveral(count, { slots: SLOTS });
  return servers.map((server, index) => ({
    id: `llama${index + 1}`,
    url: server.url,
    start: () => (server.process.isRunning ? Promise.resolve() : server.start()),
    kill: () => server.process.signal("SIGKILL"),
    terminate: () => server.process.signal("SIGTERM"),
    freeze: () => server.process.signal("SIGSTOP"),
    thaw: () => server.process.signal("SIGCONT"),
    stop: () => server.kill(),
  }));
}

export const LLAMA_FLEET_MODEL: string = LLAMA_MODEL;
