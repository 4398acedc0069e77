import { join } from "node:path";
import { installOnce } from "../../../bench/support/install.ts";
import { PythonEnvironment, script } from "./install.ts";

const AIPERF = "aiperf==0.13.0";

/** Increases when the tokenizer is to be written anew. */
const TOKENIZER_VERSION = "tiny-llama-1";

export interface Aiperf {
  readonly program: string;
  /** Of its own making: nothing is downloaded. */
  readonly tokenizer: string;
}

/** NVIDIA's load client: 1.2 GB and two minutes the first time, then at once. */
export async function installAiperf(): Promise<Aiperf> {
  const folder = await installOnce("aiperf", [AIPERF, TOKENIZER_VERSION], async (into) => {
    const environment = await PythonEnvironment.create(join(into, "venv"));
    await environment.pip("install", AIPERF);
    await environment.run(script("tiny_llama.py"), join(into, "tokenizer"));
  });
  return { program: join(folder, "venv", "bin", "aiperf"), tokenizer: join(folder, "tokenizer") };
}
