import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stringify } from "yaml";
import { pythonProgram, pythonVersion } from "../../support/install.ts";
import type { Peer } from "../peer.ts";
import { MODEL } from "../workload.ts";

const PACKAGE = "litellm";

/** It does not start with a weak one. */
const MASTER_KEY = `sk-${randomUUID()}`;

/** For the record: a thousand times slower than proxies, so its load is lighter. */
export const litellm: Peer = {
  name: "litellm",
  settings: "1 worker, master key, no database",
  isLlmRouter: true,
  client: { connections: 4, streams: 10 },
  headers: () => ({ authorization: `Bearer ${MASTER_KEY}` }),
  async install() {
    await program();
    return pythonVersion(PACKAGE, PACKAGE);
  },
  async prepare({ port, originPorts, directory }) {
    const file = join(directory, "litellm.yaml");
    const models = originPorts.map((origin) => ({
      model_name: MODEL,
      litellm_params: { model: `openai/${MODEL}`, api_base: `http://127.0.0.1:${origin}/v1`, api_key: "none" },
    }));
    await writeFile(file, stringify({ model_list: models }));
    return {
      file: await program(),
      args: ["--config", file, "--host", "127.0.0.1", "--port", String(port)],
      env: {
        LITELLM_MASTER_KEY: MASTER_KEY,
        // Otherwise it fetches prices from the network, three times, before it starts.
        LITELLM_LOCAL_MODEL_COST_MAP: "True",
        // Otherwise it breaks a stream off after 100 equal events.
        REPEATED_STREAMING_CHUNK_LIMIT: "1000000",
      },
    };
  },
};

function program(): Promise<string> {
  return pythonProgram(PACKAGE, `${PACKAGE}[proxy]==1.108.7`, PACKAGE);
}
