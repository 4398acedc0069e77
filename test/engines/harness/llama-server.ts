import { join } from "node:path";
import { parseSamples } from "../../support/metric-samples.ts";
import { script } from "../setup/install.ts";
import { installLlamaCpp, type LlamaCpp } from "../setup/install-llamacpp.ts";
import { Child, freePort } from "./child.ts";

export interface LlamaServerOptions {
  /** Default: the tiny one. */
  readonly model?: "tiny" | "smol";
  /** Requests it runs at a time. */
  readonly slots?: number;
  readonly slotContext?: number;
  /** llama.cpp's own default is the number of cores less one, which long streams use up. */
  readonly httpThreads?: number;
  readonly apiKey?: string;
  /** It then embeds and does nothing else. */
  readonly embeddings?: boolean;
  /** `module`: through Python; `program`: `llama-server` itself. They end differently when told to. */
  readonly form?: "module" | "program";
}

/** Name under which every server here offers its model. */
export const LLAMA_MODEL = "tiny";

/** Context of one slot, in tokens, unless a test asks for another. */
export const SLOT_CONTEXT = 4096;

/** A real llama.cpp server, which keeps its port over `kill` and `start`. */
export class LlamaServer {
  readonly url: string;
  readonly #installed: LlamaCpp;
  readonly #port: number;
  readonly #options: LlamaServerOptions;
  #child: Child | undefined;

  private constructor(installed: LlamaCpp, port: number, options: LlamaServerOptions) {
    this.#installed = installed;
    this.#port = port;
    this.#options = options;
    this.url = `http://127.0.0.1:${port}`;
  }

  /** Starts `count` of them, each with `options`; the first ones on a machine are installed before. */
  static async startSeveral(count: number, options: LlamaServerOptions = {}): Promise<LlamaServer[]> {
    const installed = await installLlamaCpp();
    const servers: LlamaServer[] = [];
    for (let i = 0; i < count; i++) servers.push(new LlamaServer(installed, await freePort(), options));
    await Promise.all(servers.map((server) => server.start()));
    return servers;
  }

  get process(): Child {
    if (this.#child === undefined) throw new Error("not started");
    return this.#child;
  }

  /** Starts it, again if need be, and waits until its model is loaded. */
  async start(): Promise<void> {
    this.#child = this.#options.form === "program" ? this.#program() : this.#module();
    await this.#child.answersAt(`${this.url}/health`);
  }

  async kill(): Promise<void> {
    await this.#child?.kill();
  }

  /** Slots that work on a request now. */
  async busySlots(): Promise<number> {
    const response = await fetch(`${this.url}/slots`);
    const slots = (await response.json()) as readonly { readonly is_processing: boolean }[];
    return slots.filter((slot) => slot.is_processing).length;
  }

  /** A value of its `/metrics`, such as `n_decode_total`. */
  async metric(name: string): Promise<number> {
    const samples = parseSamples(await (await fetch(`${this.url}/metrics`)).text());
    return samples.find((sample) => sample.name === `llamacpp:${name}`)?.value ?? Number.NaN;
  }

  #module(): Child {
    const { slots = 2, slotContext = SLOT_CONTEXT, httpThreads = 64, apiKey, embeddings = false } = this.#options;
    return new Child(this.#installed.python, [
      script("llama_server.py"),
      ...["--model", this.#modelFile, "--alias", LLAMA_MODEL, "--port", `${this.#port}`],
      ...["--slots", `${slots}`, "--slot-context", `${slotContext}`, "--http-threads", `${httpThreads}`],
      ...(apiKey === undefined ? [] : ["--api-key", apiKey]),
      ...(embeddings ? ["--embeddings"] : []),
    ]);
  }

  #program(): Child {
    const folder = this.#installed.programFolder;
    if (folder === undefined) throw new Error("llama-server is not installed on this platform");
    const { slots = 2, slotContext = SLOT_CONTEXT, httpThreads = 64 } = this.#options;
    const args = [
      ...["--model", this.#modelFile, "--alias", LLAMA_MODEL, "--host", "127.0.0.1", "--port", `${this.#port}`],
      ...["--parallel", `${slots}`, "--ctx-size", `${slots * slotContext}`, "--threads", "1"],
      ...["--threads-http", `${httpThreads}`, "--metrics", "--slots"],
    ];
    return new Child(join(folder, "llama-server"), args, { LD_LIBRARY_PATH: folder });
  }

  get #modelFile(): string {
    return this.#options.model === "smol" ? this.#installed.smolModel : this.#installed.tinyModel;
  }
}
