import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { evenkeelCommand, ROOT } from "../../support/install.ts";
import type { Peer } from "../peer.ts";

export const evenkeel: Peer = {
  name: "evenkeel",
  settings: "default policy and options, probes, ledger and metrics on",
  async install() {
    const manifest = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as { readonly version: string };
    return `${manifest.version} on Node ${process.versions.node}`;
  },
  async prepare({ port, adminPort, originPorts, directory }) {
    const file = join(directory, "evenkeel.yaml");
    const lines = [
      `listen: 127.0.0.1:${port}`,
      `admin: 127.0.0.1:${adminPort}`,
      "endpoints:",
      ...originPorts.map((origin) => `  - http://127.0.0.1:${origin}`),
    ];
    await writeFile(file, `${lines.join("\n")}\n`);
    return evenkeelCommand("serve", "--config", file);
  },
};
