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

const newFolder = (): string => mkdtempSync(join(tmpdir(), "evenkeel-"));

const run = (program: string, ...args: readonly string[]) => promisify(execFile)(process.execPath, [program, ...args]);

/** A copy of it, far from the packages that are installed here. */
function copyOfProgram(): string {
  const folder = newFolder();
  cpSync(MANIFEST, join(folder, "package.json"));
  const place = join(folder, "dist", "bin");
  cpSync(dirname(PROGRAM), place, { recursive: true });
  return join(place, basename(PROGRAM));
}

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
    expect((await run(PROGRAM, "--version")).stdout).toBe(`${version}\n`);
  });

  it("says nothing of a reader of its output that has left", async () => {
    const pipe = promisify(execFile)("sh", ["-c", `"${process.execPath}" "${PROGRAM}" --help | true`]);
    expect((await pipe).stderr).toBe("");
  });

  it("writes a report with its plots", async () => {
    const file = join(newFolder(), "report.html");
    await run(PROGRAM, "simulate", "--trace", "synthetic:rate=8,requests=20,in=exp(600),out=exp(40)", "--html", file);
    const scripts = readFileSync(file, "utf8").match(/<script[^>]*>.+?<\/script>/gs);
    expect(scripts).toHaveLength(3);
  });

  it("carries the licences of the packages inside it", () => {
    const licences = readFileSync(join(dirname(PROGRAM), "third-party-licenses.txt"), "utf8");
    // The plots of a report stay a file of their own, beside their licence.
    const { uplot: _apart, ...inside } = dependencies;
    for (const [name, of] of Object.entries(inside)) expect(licences).toContain(`${name} ${of}\n`);
  });
});

// It is what makes a start quick: hundreds of files more would be looked for and opened.
describe("the program by itself, without the files of any package", () => {
  it("shows what each command offers", async () => {
    const program = copyOfProgram();
    const { stdout } = await run(program, "--help");
    const commands = [...stdout.matchAll(/^ {2}(\w+) .*\[options\]/gm)].map(([, name = ""]) => name);
    expect(commands).toContain("simulate");
    for (const command of commands) expect((await run(program, command, "--help")).stdout).toMatch(/^Usage: evenkeel /);
  });

  it.each([
    { how: "with a log in JSON", args: ["--log-format", "json"], isJson: true },
    { how: "with a log for people", args: ["--log-format", "pretty"], isJson: false },
    { how: "in several processes", args: ["--log-format", "json", "--workers", "2"], isJson: true },
  ])("serves, $how", async ({ args, isJson }) => {
    const log = await servingLog(copyOfProgram(), ...args);
    expect(log.startsWith("{")).toBe(isJson);
    expect(log).toContain("serving");
  });
});
