import { constants, existsSync } from "node:fs";
import { access, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { PROGRAM } from "../../test/support/program.ts";
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

/**
 * The folder `.engines/<name>`, filled by `install` unless that was done before from the same recipe.
 * @param recipe Everything the content depends on; when it changes, the folder is made anew.
 */
export async function installOnce(
  name: string,
  recipe: readonly string[],
  install: (folder: string) => Promise<unknown>,
): Promise<string> {
  const folder = join(ENGINES, name);
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

/** A program of a Python environment with one exactly pinned package; the environment is made when it is missing. */
export async function pythonProgram(name: string, requirement: string, program: string): Promise<string> {
  const folder = await installOnce(name, [requirement], async (into) => {
    await runToEnd({ file: "python3", args: ["-m", "venv", into] });
    await runToEnd({ file: join(into, "bin", "pip"), args: ["install", "--quiet", requirement] });
  });
  return join(folder, "bin", program);
}

/** Version of a package in a Python environment, as installed. @throws when it is not. */
export async function pythonVersion(name: string, packageName: string): Promise<string> {
  const code = "import sys; from importlib.metadata import version; print(version(sys.argv[1]))";
  const file = join(ENGINES, name, "bin", "python");
  return (await runToEnd({ file, args: ["-c", code, packageName] })).trim();
}

/**
 * The folder of one exactly pinned package of npm, in a prefix of its own that is made when it is missing.
 * @param overrides Versions of what it depends on.
 */
export async function npmPackage(
  name: string,
  packageName: string,
  version: string,
  overrides: Readonly<Record<string, string>>,
): Promise<string> {
  const recipe = Object.entries({ [packageName]: version, ...overrides }).map((pinned) => pinned.join("@"));
  const prefix = await installOnce(name, recipe, async (into) => {
    const manifest = { private: true, dependencies: { [packageName]: version }, overrides };
    await writeFile(join(into, "package.json"), JSON.stringify(manifest));
    await runToEnd({ file: "npm", args: ["install", "--prefix", into, "--ignore-scripts", "--no-audit", "--no-fund"] });
  });
  return join(prefix, "node_modules", packageName);
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
  if (!existsSync(PROGRAM)) throw new Error("evenkeel is not built: run `npm run build` first");
  return { file: process.execPath, args: [PROGRAM, ...args] };
}
