import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { PROGRAM } from "./support/program.ts";

const MANIFEST = new URL("../package.json", import.meta.url);
const { version, dependencies } = JSON.parse(readFileSync(MANIFEST, "utf8"));

const evenkeel = (...args: readonly string[]) => promisify(execFile)(process.execPath, [PROGRAM, ...args]);

const newFolder = (): string => mkdtempSync(join(tmpdir(), "evenkeel-"));

/** What `serve` prints until it serves. */
async function servingLog(program: string, ...args: readonly string[]): Promise<string> {
  const settings = ["--listen", "127.0.0.1:0", "--admin", "off", "--endpoint", "127.0.0.1:1"];
  const child = spawn(process.execPath, [program, "serve", ...settings, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
    // A second one would end it at once.
    if (!child.killed && /\bserving\b/.test(output)) child.kill("SIGTERM");
  });
  expect(await once(child, "exit")).toEqual([0, null]);
  return output;
}

describe("the program that the package names", () => {
  it("prints the version of the package", async () => {
    expect((await evenkeel("--version")).stdout).toBe(`${version}\n`);
  });

  it("shows what each command offers", async () => {
    const { stdout } = await evenkeel("--help");
    const commands = [...stdout.matchAll(/^ {2}(\w+) .*\[options\]/gm)].map(([, name = ""]) => name);
    expect(commands).toContain("simulate");
    for (const command of commands) expect((await evenkeel(command, "--help")).stdout).toMatch(/^Usage: evenkeel /);
  });

  it("writes a report with its plots", async () => {
    const file = join(newFolder(), "report.html");
    await evenkeel("simulate", "--trace", "synthetic:rate=8,requests=20,in=exp(600),out=exp(40)", "--html", file);
    const scripts = readFileSync(file, "utf8").match(/<script[^>]*>.+?<\/script>/gs);
    expect(scripts).toHaveLength(3);
  });

  it.each(["json", "pretty"])("logs as %s", async (format) => {
    const log = await servingLog(PROGRAM, "--log-format", format);
    expect(log.startsWith("{")).toBe(format === "json");
  });

  // It is what makes a start quick: hundreds of files more would be looked for and opened.
  it("serves from its own files, without those of any package", async () => {
    const folder = newFolder();
    cpSync(MANIFEST, join(folder, "package.json"));
    const place = join(folder, "dist", "bin");
    cpSync(dirname(PROGRAM), place, { recursive: true });
    expect(await servingLog(join(place, basename(PROGRAM)))).toContain("serving");
  });

  it("carries the licences of the packages inside it", () => {
    const licences = readFileSync(join(dirname(PROGRAM), "third-party-licenses.txt"), "utf8");
    // The plots of a report stay a file of their own, beside their licence.
    const { uplot: _apart, ...inside } = dependencies;
    for (const [name, of] of Object.entries(inside)) expect(licences).toContain(`${name} ${of}\n`);
  });
});
