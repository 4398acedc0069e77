import { execFileSync } from "node:child_process";
import { parseSamples, sumOf } from "../../support/metric-samples.ts";
import { installVllm, type Vllm } from "../setup/install-vllm.ts";
import { Child, freePort } from "./child.ts";

export const VLLM_MODEL = "tiny";

/** Longest prompt and answer together. */
export const VLLM_CONTEXT = 2048;

const BLOCK_TOKENS = 32;
const BLOCKS = 128;

/** One block is vLLM's own. */
export const VLLM_KV_TOKENS: number = (BLOCKS - 1) * BLOCK_TOKENS;

/** A real vLLM on the CPU, which keeps its port over `kill` and `start`. */
export class VllmServer {
  readonly url: string;
  readonly #installed: Vllm;
  readonly #port: number;
  #child: Child | undefined;

  private constructor(installed: Vllm, port: number) {
    this.#installed = installed;
    this.#port = port;
    this.url = `http://127.0.0.1:${port}`;
  }

  /** Starts `count` of them side by side; half a minute to two minutes. */
  static async startSeveral(count: number): Promise<VllmServer[]> {
    const installed = await installVllm();
    const servers: VllmServer[] = [];
    for (let i = 0; i < count; i++) servers.push(new VllmServer(installed, await freePort()));
    await Promise.all(servers.map((server) => server.start()));
    return servers;
  }

  get process(): Child {
    if (this.#child === undefined) throw new Error("not started");
    return this.#child;
  }

  async start(): Promise<void> {
    const { python, programFolder, model } = this.#installed;
    const flags = [
      ...["--model", model, "--served-model-name", VLLM_MODEL, "--host", "127.0.0.1", "--port", `${this.#port}`],
      ...["--load-format", "dummy", "--enforce-eager", "--max-model-len", `${VLLM_CONTEXT}`, "--max-num-seqs", "8"],
      ...["--block-size", `${BLOCK_TOKENS}`, "--num-gpu-blocks-override", `${BLOCKS}`, "--enable-prefix-caching"],
      ...["--enable-prompt-tokens-details", "--enable-server-load-tracking", "--enable-request-id-headers"],
    ];
    this.#child = new Child(python, ["-m", "vllm.entrypoints.openai.api_server", ...flags], {
      HF_HUB_OFFLINE: "1",
      TRANSFORMERS_OFFLINE: "1",
      VLLM_NO_USAGE_STATS: "1",
      VLLM_CPU_KVCACHE_SPACE: "1",
      VLLM_CPU_OMP_THREADS_BIND: "nobind",
      OMP_NUM_THREADS: "1",
      PATH: `${programFolder}:${process.env.PATH ?? ""}`,
    });
    await this.#child.answersAt(`${this.url}/health`);
  }

  /** Kills the process that computes; the one that speaks HTTP has to notice. */
  killEngineCore(): void {
    const core = this.#children().find(({ command }) => /EngineCore/i.test(command));
    if (core === undefined) throw new Error(`no engine core among ${JSON.stringify(this.#children())}`);
    process.kill(core.pid, "SIGKILL");
  }

  /** Ends it with all processes it has. */
  async kill(): Promise<void> {
    const children = this.#child?.isRunning ? this.#children() : [];
    await this.#child?.kill();
    for (const { pid } of children) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It ended with its parent.
      }
    }
  }

  async metric(name: string): Promise<number> {
    return sumOf(parseSamples(await (await fetch(`${this.url}/metrics`)).text()), `vllm:${name}`);
  }

  #children(): { readonly pid: number; readonly command: string }[] {
    const table = execFileSync("ps", ["-e", "-o", "pid=,ppid=,args="], { encoding: "utf8" });
    return table
      .split("\n")
      .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line))
      .filter((match) => Number(match?.[2]) === this.process.pid)
      .map((match) => ({ pid: Number(match?.[1]), command: match?.[3] ?? "" }));
  }
}
