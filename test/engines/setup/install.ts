import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runToEnd } from "../../../bench/support/managed-process.ts";

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
