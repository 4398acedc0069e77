import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ROOT } from "../../../bench/support/install.ts";
import { runToEnd } from "../../../bench/support/managed-process.ts";

/** Where tests keep what they install, from run to run. Git ignores it; deleting it is always safe. */
const ENGINES_FOLDER = join(ROOT, ".engines");

/**
 * The folder `.engines/<name>`, filled by `install` unless that was done before from the same recipe.
 * @param recipe Everything the content depends on; when it changes, the folder is made anew.
 */
export async function installOnce(
  name: string,
  recipe: readonly string[],
  install: (folder: string) => Promise<void>,
): Promise<string> {
  const folder = join(ENGINES_FOLDER, name);
  const stamp = join(folder, "installed.json");
  const wanted = JSON.stringify(recipe);
  if (existsSync(stamp) && (await readFile(stamp, "utf8")) === wanted) return folder;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  console.error(`installing into ${folder}: ${recipe.join(", ")}`);
  await install(folder);
  // Written last: an installation that was interrupted is not taken for a whole one.
  await writeFile(stamp, wanted);
  return folder;
}

/** A script that lies beside this file. */
export function script(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}

/** A virtual environment of Python in `folder`. */
export class PythonEnvironment {
  readonly python: string;

  constructor(folder: string) {
    this.python = join(folder, "bin", "python");
  }

  /** @throws when there is no Python, or one without its `venv` module. */
  static async create(folder: string): Promise<PythonEnvironment> {
    try {
      await runToEnd({ file: "python3", args: ["-m", "venv", folder] });
    } catch (error) {
      throw new Error(`Real engines need Python 3.10 or newer with its venv module as "python3".\n${error}`);
    }
    return new PythonEnvironment(folder);
  }

  /** @returns what it wrote on standard output. @throws with its complaint when it fails. */
  run(...args: string[]): Promise<string> {
    return runToEnd({ file: this.python, args });
  }

  async pip(...args: string[]): Promise<void> {
    await this.run("-m", "pip", "--disable-pip-version-check", "--quiet", ...args);
  }
}
