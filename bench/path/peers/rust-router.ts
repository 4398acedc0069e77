import { pythonProgram, pythonVersion } from "../../support/install.ts";
import type { Peer } from "../peer.ts";

/** One of the routers in Rust, which come from one stem: packages of Python that take the same arguments. */
export interface RustRouter {
  readonly name: string;
  /** On PyPI; its program has the same name. */
  readonly packageName: string;
  readonly version: string;
  /** Arguments that come first. */
  readonly command: readonly string[];
  /** The level that logs no requests, in its own words. */
  readonly logLevel: string;
  /** What else bears on its figures; undefined: nothing. */
  readonly remarks?: readonly string[];
}

/** Each with its default policy, the one that looks at prompts as evenkeel's does. */
export function rustRouter({ name, packageName, version, command, logLevel, remarks = [] }: RustRouter): Peer {
  const program = (): Promise<string> => pythonProgram(packageName, `${packageName}==${version}`, packageName);
  const fixed = ["--host", "127.0.0.1", "--prometheus-host", "127.0.0.1", "--policy", "cache_aware"];
  const commandLine = [packageName, ...command, "--policy cache_aware --log-level", logLevel].join(" ");
  return {
    name,
    settings: [commandLine, "one worker thread", ...remarks].join(", "),
    isLlmRouter: true,
    async install() {
      await program();
      return pythonVersion(packageName, packageName);
    },
    async prepare({ port, adminPort, originPorts }) {
      const ports = ["--port", String(port), "--prometheus-port", String(adminPort)];
      const urls = originPorts.map((origin) => `http://127.0.0.1:${origin}`);
      return {
        file: await program(),
        args: [...command, ...fixed, ...ports, "--log-level", logLevel, "--worker-urls", ...urls],
        // They have no option for it, but their runtime heeds this.
        env: { TOKIO_WORKER_THREADS: "1" },
      };
    },
  };
}
