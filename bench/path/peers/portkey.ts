import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { npmPackage } from "../../support/install.ts";
import type { Peer } from "../peer.ts";

const PACKAGE = "@portkey-ai/gateway";

/** Its server in the version that it was written for, rather than whichever is the newest that day. */
const OVERRIDES = { "@hono/node-server": "1.3.3" };

/** For the record: hundreds of times slower than proxies, so its load is lighter. */
export const portkey: Peer = {
  name: "portkey",
  settings: "--headless, mode loadbalance; listens on all interfaces",
  isLlmRouter: true,
  client: { connections: 4, streams: 10 },
  headers({ originPorts }) {
    const targets = originPorts.map((origin) => ({
      provider: "openai",
      api_key: "none",
      custom_host: `http://127.0.0.1:${origin}/v1`,
    }));
    return { "x-portkey-config": JSON.stringify({ strategy: { mode: "loadbalance" }, targets }) };
  },
  async install() {
    const manifest = await readFile(join(await folder(), "package.json"), "utf8");
    return `${(JSON.parse(manifest) as { readonly version: string }).version} on Node ${process.versions.node}`;
  },
  async prepare({ port }) {
    const program = join(await folder(), "build", "start-server.js");
    return { file: process.execPath, args: [program, `--port=${port}`, "--headless"] };
  },
};

function folder(): Promise<string> {
  return npmPackage("portkey", PACKAGE, "1.15.2", OVERRIDES);
}
