/**
 * Counts that repeat on a noisy machine, beside those of `counts.json`: what a change did to the path shows in them
 * before it shows in times. Figures never fail it. `--update` makes these counts the baseline; `--json` prints one object.
 */

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Counts, comparison, rounded } from "./counts/compare.ts";
import { countAll } from "./counts/run.ts";
import { debianProgram } from "./support/install.ts";

const BASELINE = new URL("./counts.json", import.meta.url);

const { values } = parseArgs({
  options: { update: { type: "boolean", default: false }, json: { type: "boolean", default: false } },
});
const scratch = await mkdtemp(join(tmpdir(), "evenkeel-counts-"));
try {
  const strace = await debianProgram("strace", "strace").catch((error: Error) => {
    process.stderr.write(`no strace, so not all system calls are counted: ${error.message}\n`);
    return undefined;
  });
  const counts = await countAll(scratch, strace);
  const baseline = JSON.parse(await readFile(BASELINE, "utf8")) as Counts;
  process.stdout.write(`${values.json ? JSON.stringify({ counts, baseline }) : comparison(counts, baseline)}\n`);
  if (values.update) {
    const short = Object.entries(counts).map(([name, count]) => [name, count && rounded(count)]);
    await writeFile(BASELINE, `${JSON.stringify(Object.fromEntries(short), undefined, 2)}\n`);
  }
} finally {
  await rm(scratch, { recursive: true });
}
