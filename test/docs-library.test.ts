import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const page = readFileSync(join(root, "docs/library.md"), "utf8");
/** The program is in a folder of its own, where these names lead nowhere. */
const MODULES = { evenkeel: new URL("../src/core/index.ts", import.meta.url).href, zod: import.meta.resolve("zod") };

/** Each program on the page, with what it is said to print. */
const programs = [...page.matchAll(/```ts\n(.*?)\n```\n\nIt prints:\n\n```text\n(.*?)```/gs)].map(
  ([, program = "", output = ""]) => ({ program, output: output.trimEnd() }),
);

let folder: string | undefined;

afterEach(async () => {
  if (folder !== undefined) await rm(folder, { recursive: true });
});

it("docs/library.md says of every program what it prints", () => {
  expect(programs).toHaveLength(page.match(/^```ts$/gm)?.length ?? 0);
  expect(programs.length).toBeGreaterThan(0);
});

it.each(programs)(
  "docs/library.md holds a program that prints what the page says",
  async ({ program, output }) => {
    expect(program).toContain('from "evenkeel"');
    folder = await mkdtemp(join(tmpdir(), "evenkeel-"));
    const file = join(folder, "program.mts");
    const runnable = Object.entries(MODULES).reduce(
      (text, [name, url]) => text.replace(`"${name}"`, `"${url}"`),
      program,
    );
    await writeFile(file, runnable);
    const { stdout } = await promisify(execFile)(process.execPath, ["--import", "tsx", file], { cwd: root });
    expect(stdout.trimEnd()).toBe(output);
  },
  60_000,
);
