import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { commandLine } from "../../test/support/command-line.ts";
import { run } from "./program.ts";

const evenkeel = commandLine(run);

const BODY = JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }] });

function fileWith(text: string, name = "evenkeel.yaml"): string {
  const path = join(mkdtempSync(join(tmpdir(), "evenkeel-")), name);
  writeFileSync(path, text);
  return path;
}

describe("evenkeel", () => {
  it("shows its commands", async () => {
    const { code, output } = await evenkeel(["--help"]);
    expect(code).toBe(0);
    for (const command of ["serve", "check", "explain", "engine"])
      expect(output).toMatch(new RegExp(`^  ${command} `, "m"));
  });

  it("prints its version", async () => {
    expect(await evenkeel(["--version"])).toMatchObject({
      code: 0,
      output: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
    });
  });

  it.each([
    [[]],
    [["srve"]],
    [["serve", "--polcy", "random"]],
    [["serve", "http://a:1"]],
    [["serve", "--listen"]],
    [["explain", "--endpoint", "a:1", "--header", "x-session-id"]],
    [["explain", "--endpoint", "a:1", "/nonexistent.json"]],
  ])("takes %j for a command line it does not understand", async (args) => {
    const { code, output, errors } = await evenkeel(args);
    expect(code).toBe(2);
    expect(output).toBe("");
    expect(errors).toMatch(/See evenkeel( \w+)? --help|Usage: evenkeel/);
  });

  it("offers the word that was meant, and the help", async () => {
    expect((await evenkeel(["serve", "--polcy", "random"])).errors).toMatchInlineSnapshot(`
      "error: unknown option '--polcy'
      (Did you mean --policy?)
      See evenkeel serve --help for what there is.
      "
    `);
  });
});

describe("evenkeel check", () => {
  it("shows what would run", async () => {
    const path = fileWith(`
endpoints:
  - a:8000
  - { url: "http://b:8000", id: b, weight: 2, engine: vllm, apiKey: "\${KEY}" }
aliases: { fast: llama }
policy: { name: token_aware, horizonSeconds: 30 }
`);
    const { code, output } = await evenkeel(["check", "--config", path], { environment: { KEY: "k3y42" } });
    expect(code).toBe(0);
    expect(output).toMatchInlineSnapshot(`
      "The configuration is right.

      listen  127.0.0.1:8080
      admin   127.0.0.1:9090, whoever can connect
      keys    none: everyone may send, and credentials are passed on

      pool default
        policy  token_aware (prefillWeight: 0.1, decodeWeight: 1, line: 0.95, horizonSeconds: 30)
        models  those the endpoints report
        alias   fast -> llama
        endpoint  url            engine  weight  key
        a:8000    http://a:8000  auto         1
        b         http://b:8000  vllm         2  yes
      "
    `);
  });

  it("shows it as JSON, without the keys", async () => {
    const path = fileWith(`endpoints: [{ url: "http://b:8000", apiKey: "k3y42" }]\naliases: { fast: llama }\n`);
    const { code, output } = await evenkeel(["check", "--config", path, "--json"]);
    expect(code).toBe(0);
    expect(output).not.toContain("k3y42");
    expect(JSON.parse(output)).toMatchObject({
      ok: true,
      config: { pools: [{ aliases: { fast: "llama" }, endpoints: [{ id: "b:8000", apiKey: "(hidden)" }] }] },
    });
  });

  it("reports everything that is wrong", async () => {
    const path = fileWith("polcy: random\nendpoints:\n  - a:8000\n  - { url: b:8000, weight: -1 }\n");
    const { code, output, errors } = await evenkeel(["check", "-c", path], {
      environment: { EVENKEEL_LOG_LEVEL: "loud" },
    });
    expect(code).toBe(1);
    expect(output).toBe("");
    expect(errors.replaceAll(path, "evenkeel.yaml")).toMatchInlineSnapshot(`
      "error: 3 problems in the configuration
        evenkeel.yaml:1:1: polcy is not a setting, expected policy
        evenkeel.yaml:4:28: endpoints[1].weight is -1, expected a number of at least 0
        EVENKEEL_LOG_LEVEL: log.level is "loud", expected one of trace, debug, info, warn, error, fatal, silent
      "
    `);
  });

  it("reports it as JSON", async () => {
    const { code, output } = await evenkeel(["check", "--endpoint", "a", "--json"]);
    expect(code).toBe(1);
    expect(JSON.parse(output)).toEqual({
      ok: false,
      problems: [
        {
          path: "endpoints[0]",
          source: "--endpoint",
          found: '"a"',
          expected: "an http:// or https:// URL, or host:port",
        },
      ],
    });
  });

  it("takes the file from EVENKEEL_CONFIG, and from --config rather", async () => {
    const environment = { EVENKEEL_CONFIG: fileWith("endpoints: [a:1]") };
    expect((await evenkeel(["check"], { environment })).output).toContain("http://a:1");
    expect((await evenkeel(["check", "-c", fileWith("endpoints: [b:1]")], { environment })).output).toContain(
      "http://b:1",
    );
  });
});

describe("evenkeel serve", () => {
  it("reports a bad configuration and does not start", async () => {
    expect(await evenkeel(["serve"])).toMatchObject({
      code: 1,
      errors: expect.stringContaining("endpoints is missing"),
    });
  });

  it("does not start when it is to record to a file that cannot be written", async () => {
    const file = "/nowhere/traffic.jsonl";
    const args = ["serve", "--endpoint", "a:1", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--record", file];
    expect(await evenkeel(args)).toMatchObject({ code: 1, errors: `error: cannot record to ${file}: ENOENT\n` });
  });

  it("shows every setting of the configuration that a flag can hold", async () => {
    const { output } = await evenkeel(["serve", "--help"]);
    for (const flag of ["--endpoint <url>", "--timeouts-first-byte <duration|off>", "--log-level <level>"]) {
      expect(output).toContain(flag);
    }
    expect(output).not.toMatch(/--pools|--aliases/);
  });
});

describe("evenkeel engine", () => {
  it("reports bad options like those of a balancer", async () => {
    const { code, errors } = await evenkeel(["engine", "--speed", "fast", "--kv-tokens", "1"]);
    expect(code).toBe(1);
    expect(errors).toMatchInlineSnapshot(`
      "error: 2 problems in the configuration
        --speed: speed is "fast", expected a number
        --kv-tokens: kvTokens is 1, expected a number of at least 64
      "
    `);
  });

  it("starts, and stops when it is told to", async () => {
    const { code, output } = await evenkeel(["engine", "--listen", "127.0.0.1:0", "--model", "m"]);
    expect(code).toBe(0);
    expect(output).toMatch(/^engine for m on http:\/\/127\.0\.0\.1:\d+ /);
  });
});

describe("evenkeel explain", () => {
  const fleet = ["--endpoint", "a:1", "--endpoint", "b:1", "--policy", "round_robin"];

  it("shows what a balancer that has just started would choose", async () => {
    const path = fileWith("policy: round_robin\nendpoints: [a:1, { url: 'b:1', weight: 0 }]\n");
    const { code, output } = await evenkeel(["explain", "-c", path, "-H", "X-Session-Id: s1"], { input: BODY });
    expect(code).toBe(0);
    expect(output).toMatchInlineSnapshot(`
      "model    m, pool default
      request  1 prompt tokens, 256 output tokens expected, not streamed, session s1
      policy   round_robin; score: requests since its last turn, highest wins

        endpoint  score  cached tokens
      > a:1           1              0
        b:1 is no candidate: weight zero

      a:1: longest since its last turn
      "
    `);
  });

  it("prints the answer as JSON, of a body in a file", async () => {
    const { output } = await evenkeel(["explain", ...fleet, "--json", fileWith(BODY, "body.json")]);
    expect(JSON.parse(output)).toMatchObject({
      model: "m",
      policy: "round_robin",
      wouldHold: false,
      considered: [{ endpoint: "a:1" }, { endpoint: "b:1" }],
    });
  });

  it("says that nothing can be chosen, and why", async () => {
    const path = fileWith(`endpoints: [{ url: "a:1", weight: 0 }]`);
    const { code, output } = await evenkeel(["explain", "-c", path], { input: BODY });
    expect(code).toBe(0);
    expect(output).toContain("a:1 is no candidate: weight zero");
    expect(output).toContain("no endpoint:");
  });

  it.each([
    ["a body that is not JSON", "{", []],
    ["a path that is not balanced", BODY, ["--path", "/v1/files"]],
  ])("refuses %s", async (_what, input, args) => {
    const { code, errors } = await evenkeel(["explain", ...fleet, ...args], { input });
    expect(code).toBe(1);
    expect(errors).toMatch(/^error: .+\n$/);
  });

  it("asks a running balancer", async () => {
    const asked: string[] = [];
    const admin = createServer(async (request, response) => {
      asked.push(`${request.method} ${request.url}`);
      for await (const chunk of request) asked.push(String(chunk));
      response.end(
        JSON.stringify({
          pool: "default",
          model: "m",
          profile: { promptTokens: 12, expectedOutputTokens: 200.4, isStreaming: true, priority: "normal" },
          policy: "least_delay",
          reason: "least delay to it and to the others",
          chosen: "a:1",
          wouldHold: true,
          considered: [
            { endpoint: "a:1", score: 12.3456, terms: { decode: 2 }, cachedTokens: 256 },
            { endpoint: "b:1", score: 1234.56, terms: { decode: 30, stall: 0.5 }, cachedTokens: 0 },
          ],
          excluded: [{ endpoint: "c:1", why: "auth_failed" }],
        }),
      );
    });
    await new Promise<void>((resolve) => admin.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void admin.close());
    const url = `http://127.0.0.1:${(admin.address() as AddressInfo).port}`;

    const { code, output } = await evenkeel(["explain", "--admin", url, "-H", "X-Session-Id: s1"], { input: BODY });

    expect(code).toBe(0);
    expect(asked[0]).toBe("POST /admin/explain");
    expect(JSON.parse(asked[1] ?? "")).toEqual({
      path: "/v1/chat/completions",
      headers: { "x-session-id": "s1" },
      body: JSON.parse(BODY),
    });
    expect(output).toMatchInlineSnapshot(`
      "model    m, pool default
      request  12 prompt tokens, 200 output tokens expected, streamed, no session
      policy   least_delay; score: price in ms, lowest wins

        endpoint  score  decode  stall  cached tokens
      > a:1       12.35       2                   256
        b:1        1235      30    0.5              0
        c:1 is no candidate: auth failed

      a:1: least delay to it and to the others
      would be held for a:1 until it can begin
      "
    `);
  });

  it("says that no balancer answers", async () => {
    const gone = createServer();
    await new Promise<void>((resolve) => gone.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(gone.address() as AddressInfo).port}`;
    await new Promise((resolve) => gone.close(resolve));
    expect(await evenkeel(["explain", "--admin", url], { input: BODY })).toMatchObject({
      code: 1,
      errors: `error: no balancer answers on ${url} (ECONNREFUSED)\n`,
    });
  });

  it("wants a URL of the balancer", async () => {
    expect(await evenkeel(["explain", "--admin", "nowhere"], { input: BODY })).toMatchObject({
      code: 1,
      errors: "error: --admin expects a URL such as http://127.0.0.1:9090\n",
    });
  });
});
