import { constants, existsSync } from "node:fs";
import { access } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Command, runToEnd } from "./managed-process.ts";

/** The repository. */
export const ROOT: string = fileURLToPath(new URL("../..", import.meta.url));

/** Where programs that benchmarks need are installed; not part of the repository. */
const ENGINES: string = join(ROOT, ".engines");

/** Where a program of the system lies; installs its Debian package when it is missing. @throws when that fails. */
export async function debianProgram(program: string, packageName: string): Promise<string> {
  const found = await onPath(program);
  if (found !== undefined) return found;
  const asRoot = process.getuid?.() === 0 ? [] : ["sudo", "-n"];
  const run = (...args: string[]): Promise<string> => {
    const [file = "", ...rest] = [...asRoot, "apt-get", ...args];
    return runToEnd({ file, args: rest, env: { DEBIAN_FRONTEND: "noninteractive" } });
  };
  await run("update", "-qq");
  await run("install", "-y", "-qq", "--no-install-recommends", packageName);
  const installed = await onPath(program);
  if (installed === undefined) throw new Error(`the package ${packageName} brought no program ${program}`);
  return installed;
}

/** The `bin` folder of a Python environment with one exactly pinned package; made when it is missing. */
export async function pythonProgram(name: string, requirement: string, program: string): Promise<string> {
  const environment = join(ENGINES, name);
  const file = join(environment, "bin", program);
  if (existsSync(file)) return file;
  await runToEnd({ file: "python3", args: ["-m", "venv", environment] });
  await runToEnd({ file: join(environment, "bin", "pip"), args: ["install", "-q", requirement] });
  return file;
}

/** Daemons lie where only the administrator's path leads. */
const DAEMON_FOLDERS = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

async function onPath(program: string): Promise<string | undefined> {
  for (const folder of [...(process.env.PATH ?? "").split(delimiter), ...DAEMON_FOLDERS]) {
    const file = join(folder, program);
    const isProgram = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isProgram) return file;
  }
  return undefined;
}

/** How evenkeel itself is run, as built. @throws when it is not. */
export function evenkeelCommand(...args: readonly string[]): Command {
  const program = join(ROOT, "dist", "cli", "main.js");
  if (!existsSync(program)) throw new Error("evenkeel is not built: run `npm run build` first");
  return { file: process.execPath, args: [program, ...args] };
}
