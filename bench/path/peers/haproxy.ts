import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { debianProgram } from "../../support/install.ts";
import type { Peer, Site } from "../peer.ts";

export const haproxy: Peer = {
  name: "haproxy",
  settings: "nbthread 1, leastconn, http-reuse always, no log",
  async install() {
    const { stdout } = spawnSync(await program(), ["-v"], { encoding: "utf8" });
    return /version (\d+\.\d+\.\d+)/.exec(stdout)?.[1] ?? "unknown";
  },
  async prepare(site) {
    const file = join(site.directory, "haproxy.cfg");
    await writeFile(file, configuration(site));
    return { file: await program(), args: ["-db", "-f", file] };
  },
};

function program(): Promise<string> {
  return debianProgram("haproxy", "haproxy");
}

/** Without `strict-limits` it runs with as many connections as the system allows when that is fewer. */
function configuration({ port, originPorts }: Site): string {
  return `
global
  nbthread 1
  maxconn 32768
  no strict-limits
defaults
  mode http
  timeout connect 5s
  timeout client 600s
  timeout server 600s
frontend main
  bind 127.0.0.1:${port} backlog 4096
  default_backend origins
backend origins
  balance leastconn
  http-reuse always
${originPorts.map((origin, index) => `  server origin${index} 127.0.0.1:${origin}`).join("\n")}
`;
}
