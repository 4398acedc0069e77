import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { PROGRAM } from "../../test/support/program.ts";
import { createEngineServer } from "../engine/index.ts";

const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** The build: a loader in the process would have a say in how it ends. */
function start(args: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  closers.push(() => child.kill("SIGKILL"));
  return child;
}

/** A balancer in a process of its own, in front of an engine that takes seconds for a long answer. */
async function startBalancer(): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const engine = createEngineServer({ listen: "127.0.0.1:0", model: "m" });
  closers.push(() => engine.close());
  const { url } = await engine.listen();
  const child = start([
    "serve",
    "--listen",
    "127.0.0.1:0",
    "--admin",
    "off",
    "--endpoint",
    url,
    "--log-format",
    "json",
  ]);
  let output = "";
  for await (const chunk of child.stdout ?? []) {
    output += chunk;
    const line = output.split("\n").find((each) => each.includes('"msg":"serving"') && each.endsWith("}"));
    if (line !== undefined) return { child, url: JSON.parse(line).listen };
  }
  throw new Error(`the balancer ended: ${output}`);
}

function generate(url: string, tokens: number): Promise<Response> {
  const body = JSON.stringify({
    model: "m",
    stream: true,
    max_tokens: tokens,
    ignore_eos: true,
    messages: [{ role: "user", content: "Go on" }],
  });
  return fetch(`${url}/v1/chat/completions`, { method: "POST", headers: { "content-type": "application/json" }, body });
}

async function exitCode(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  return child.exitCode;
}

describe("the process", () => {
  it("lets running requests finish when it is told to stop, and exits with 0", async () => {
    const { child, url } = await startBalancer();
    const answer = await generate(url, 100);
    child.kill("SIGTERM");
    expect(await answer.text()).toMatch(/data: \[DONE\]\n\n$/);
    expect(await exitCode(child)).toBe(0);
  });

  it("ends at once when it is told a second time", async () => {
    const { child, url } = await startBalancer();
    const answer = await generate(url, 100_000);
    child.kill("SIGTERM");
    child.kill("SIGINT");
    await expect(answer.text()).rejects.toThrow();
    await exitCode(child);
    expect(["SIGINT", "SIGTERM"]).toContain(child.signalCode);
  });

  it("says in one line that its address is in use, and exits with 1", async () => {
    const taken = createServer();
    closers.push(() => taken.close());
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
    const { port } = taken.address() as { readonly port: number };
    const child = start(["serve", "--listen", `127.0.0.1:${port}`, "--admin", "off", "--endpoint", "127.0.0.1:1"]);
    let errors = "";
    child.stderr?.on("data", (chunk) => {
      errors += chunk;
    });
    expect(await exitCode(child)).toBe(1);
    expect(errors).toBe(
      `error: cannot listen on 127.0.0.1:${port}: the address is in use; choose another, or stop what has it\n`,
    );
  });
});
