import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { PROGRAM } from "../../test/support/program.ts";
import { until } from "../../test/support/until.ts";

const SETTINGS = "listen: 127.0.0.1:0\nadmin: off\nlog: { format: json }\n";

/** A balancer in a process of its own, and the lines of its log. */
function start(...args: readonly string[]): { child: ChildProcess; lines: () => readonly Record<string, unknown>[] } {
  const child = spawn(process.execPath, [PROGRAM, "serve", ...args], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  child.stdout?.on("data", (chunk) => {
    output += chunk;
  });
  const lines = () =>
    output
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { child, lines };
}

it("reads its file again on SIGHUP and when it changes, and lives on when the file is wrong", async () => {
  const folder = mkdtempSync(join(tmpdir(), "evenkeel-serve-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "evenkeel.yaml");
  writeFileSync(file, `${SETTINGS}endpoints: [127.0.0.1:1]\n`);
  const { child, lines } = start("--config", file);
  const logged = (part: object): Promise<void> =>
    until(() => lines().some((line) => Object.entries(part).every(([key, value]) => line[key] === value)));
  await logged({ msg: "serving" });
  child.kill("SIGHUP");
  await logged({ msg: "configuration read again, nothing has changed", trigger: "signal" });
  writeFileSync(file, `${SETTINGS}endpoints: [127.0.0.1:2]\n`);
  child.kill("SIGHUP");
  await logged({ msg: "configuration reloaded", trigger: "signal" });
  writeFileSync(file, `${SETTINGS}endpoints: []\n`);
  await logged({ msg: "configuration not reloaded, the one of before stays in force", trigger: "file" });
  child.kill("SIGTERM");
  const [code] = (await once(child, "exit")) as [number | null];
  expect(code).toBe(0);
}, 20_000);

it("is ended by SIGHUP where there is no file to read again", async () => {
  const { child, lines } = start(
    ...["--listen", "127.0.0.1:0", "--admin", "off", "--endpoint", "127.0.0.1:1", "--log-format", "json"],
  );
  await until(() => lines().some(({ msg }) => msg === "serving"));
  child.kill("SIGHUP");
  const [, signal] = (await once(child, "exit")) as [number | null, string | null];
  expect(signal).toBe("SIGHUP");
});
