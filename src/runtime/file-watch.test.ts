import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { until } from "../../test/support/until.ts";
import { monotonicClock } from "./clock.ts";
import { FileWatch } from "./file-watch.ts";

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "evenkeel-watch-"));
  onTestFinished(() => rm(path, { recursive: true }));
  return path;
}

function watch(path: string): { texts: string[]; reasons: string[] } {
  const seen: { texts: string[]; reasons: string[] } = { texts: [], reasons: [] };
  const file = new FileWatch({
    path,
    clock: monotonicClock,
    intervalMs: 5,
    changed: (text) => seen.texts.push(text),
    unreadable: (reason) => seen.reasons.push(reason),
  });
  file.start();
  onTestFinished(() => file.stop());
  return seen;
}

describe("FileWatch", () => {
  it("tells the first text and each other one, once", async () => {
    const path = join(await folder(), "f");
    await writeFile(path, "one");
    const { texts } = watch(path);
    await until(() => texts.length === 1);
    await writeFile(path, "one");
    await writeFile(path, "two");
    await until(() => texts.length === 2);
    expect(texts).toEqual(["one", "two"]);
  });

  it("follows editors that put a new file in the place of the old one", async () => {
    const path = join(await folder(), "f");
    await writeFile(path, "one");
    const { texts } = watch(path);
    await until(() => texts.length === 1);
    await writeFile(`${path}~`, "two");
    await rename(`${path}~`, path);
    await until(() => texts.length === 2);
    expect(texts).toEqual(["one", "two"]);
  });

  it("follows the symbolic links of a mounted volume", async () => {
    const at = await folder();
    for (const version of ["1", "2"]) {
      await mkdir(join(at, version));
      await writeFile(join(at, version, "f"), version);
    }
    await symlink("1", join(at, "..data"));
    await symlink(join("..data", "f"), join(at, "f"));
    const { texts } = watch(join(at, "f"));
    await until(() => texts.length === 1);
    await symlink("2", join(at, "..new"));
    await rename(join(at, "..new"), join(at, "..data"));
    await until(() => texts.length === 2);
    expect(texts).toEqual(["1", "2"]);
  });

  it("tells once that the file is not readable, and goes on when it is again", async () => {
    const path = join(await folder(), "f");
    const { texts, reasons } = watch(path);
    await until(() => reasons.length === 1);
    await writeFile(path, "one");
    await until(() => texts.length === 1);
    await rm(path);
    await until(() => reasons.length === 2);
    await writeFile(path, "one");
    await writeFile(path, "two");
    await until(() => texts.length === 2);
    expect({ texts, reasons }).toEqual({ texts: ["one", "two"], reasons: ["ENOENT", "ENOENT"] });
  });
});
