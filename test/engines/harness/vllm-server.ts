import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseSamples, sumOf } from "../../support/metric-samples.ts";
import { installVllm, type Vllm } from "../setup/install-vllm.ts";
import { Child, freePort } from "./child.ts";

export const VLLM_MODEL = "tiny";

/** Longest prompt and answer together. */
export const VLLM_CONTEXT = 2048;

/** Tokens of a block of the KV cache; on the CPU a multiple of 32. */
export const VLLM_BLOCK_TOKENS = 32;

export interface VllmServerOptions {
  /** Longest prompt and answer together. */
  readonly context?: number;
  /** Size of the KV cache. One block is vLLM's own. */
  readonly blocks?: number;
  /** Requests it runs at a time. */
  readonly sequences?: number;
  /** Undefined: its steps take as long as they take. */
  readonly pace?: VllmPace;
}

/** What steps last at least. At a pace, `vllm_xargs.answer_tokens` of a request is the length of its answer. */
export interface VllmPace {
  readonly stepMs: number;
  /** For each token scheduled in a step, on top. */
  readonly tokenMs: number;
}

const BLOCKS = 128;

/** Tokens the KV cache has room for, unless a test asks for another. */
export const VLLM_KV_TOKENS: number = (BLOCKS - 1) * VLLM_BLOCK_TOKENS;

/** The folder of the plugin that paces steps. */
const PACED_STEPS = fileURLToPath(new URL("../vllm/paced_steps", import.meta.url));

/** A real vLLM on the CPU, which keeps its port over `kill` and `start`. */
export class VllmServer {
  readonly url: string;
  readonly #installed: Vllm;
  readonly #port: number;
  readonly #options: VllmServerOptions;
  #child: Child | undefined;

  private constructor(installed: Vllm, port: number, options: VllmServerOptions) {
    this.#installed = installed;
    this.#port = port;
    this.#options = options;
    this.url = `http://127.0.0.1:${port}`;
  }

  /** Starts `count` of them side by side; half a minute to two minutes. */
  static async startSeveral(count: number, options: VllmServerOptions = {}): Promise<VllmServer[]> {
    const installed = await installVllm();
    const servers: VllmServer[] = [];
    for (let i = 0; i < count; i++) servers.push(new VllmServer(installed, await freePort(), options));
    await Promise.all(servers.map((server) => server.start()));
    return servers;
  }

  get process(): Child {
    if (this.#child === undefined) throw new Error("not started");
    return this.#child;
  }

  async start(): Promise<void> {
    const { python, programFolder, model } = this.#installed;
    const { context = VLLM_CONTEXT, blocks = BLOCKS, sequences = 8, pace } = this.#options;
    const flags = [
      ...["--model", model, "--served-model-name", VLLM_MODEL, "--host", "127.0.0.1", "--port", `${this.#port}`],
      ...["--load-format", "dummy", "--enforce-eager", "--max-model-len", `${context}`],
      ...["--max-num-seqs", `${sequences}`, "--block-size", `${VLLM_BLOCK_TOKENS}`],
      ...["--num-gpu-blocks-override", `${blocks}`, "--enable-prefix-caching"],
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
      ...(pace === undefined ? {} : paceVariables(pace)),
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

function paceVariables({ stepMs, tokenMs }: VllmPace): Record<string, string> {
  return {
    PYTHONPATH: PACED_STEPS,
    // The plugin lies among the sources.
    PYTHONDONTWRITEBYTECODE: "1",
    PACED_STEP_MS: `${stepMs}`,
    PACED_TOKEN_MS: `${tokenMs}`,
  };
}
