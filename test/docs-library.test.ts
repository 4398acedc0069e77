import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const library = new URL("../src/core/index.ts", import.meta.url).href;

let folder: string | undefined;

afterEach(async () => {
  if (folder !== undefined) await rm(folder, { recursive: true });
});

/** The first block of `language` on the page. */
function block(page: string, language: string): string {
  const found = new RegExp(`\`\`\`${language}\n(.*?)\n\`\`\``, "s").exec(page)?.[1];
  if (found === undefined) throw new Error(`docs/library.md has no block of ${language}`);
  return found;
}

it("docs/library.md holds a program that prints what the page says", async () => {
  const page = await readFile(join(root, "docs/library.md"), "utf8");
  const program = block(page, "ts");
  expect(program).toContain('from "evenkeel"');
  folder = await mkdtemp(join(tmpdir(), "evenkeel-"));
  const file = join(folder, "program.mts");
  await writeFile(file, program.replace('from "evenkeel"', `from "${library}"`));
  const { stdout } = await promisify(execFile)(process.execPath, ["--import", "tsx", file], { cwd: root });
  expect(stdout.trimEnd()).toBe(block(page, "text"));
});
