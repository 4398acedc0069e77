import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

/** As deep as a layer beside it, so that what a module names relative to itself is found from here too. */
const FOLDER = "dist/bin";
const NOTICES = "third-party-licenses.txt";

// What the command line runs: each process in a few files, the packages it uses among them. A start spends most of its
// time on finding and opening files, and there are hundreds.
const { metafile } = await build({
  entryPoints: ["src/cli/main.ts", "src/cli/simulate/run-process.ts", "src/workers/worker-main.ts"],
  outdir: FOLDER,
  entryNames: "[name]",
  chunkNames: "[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node20.18",
  sourcemap: true,
  metafile: true,
  // CommonJS packages ask for the modules of Node with `require`, which a module does not have.
  banner: { js: 'const require = process.getBuiltinModule("node:module").createRequire(import.meta.url);' },
});

writeFileSync(join(FOLDER, NOTICES), noticesOf(Object.keys(metafile.inputs)));

// Last, and only what is out of date.
for (const name of readdirSync(FOLDER)) {
  if (name !== NOTICES && !Object.hasOwn(metafile.outputs, `${FOLDER}/${name}`)) rmSync(join(FOLDER, name));
}

/** The licences of the packages that are inside, which go wherever copies of them go. */
function noticesOf(files: readonly string[]): string {
  const packages = new Set(files.flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? []));
  return [...packages].sort().map(noticeOf).join("\n\n");
}

/** @throws when the package has no file with its licence. */
function noticeOf(folder: string): string {
  const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  if (file === undefined) throw new Error(`${name} has no licence file`);
  return `${name} ${version}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
}
