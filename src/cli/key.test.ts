import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { commandLine } from "../../test/support/command-line.ts";
import { readConfig } from "../config/index.ts";
import { run } from "./program.ts";

const evenkeel = commandLine(run);

const sha256 = (key: string): string => `sha256:${createHash("sha256").update(key).digest("hex")}`;

describe("evenkeel key", () => {
  it("makes a key that nobody guesses, and the lines of the file that know it", async () => {
    const { code, output } = await evenkeel(["key"]);
    expect(code).toBe(0);
    const key = /^key {3}(ek-[\w-]{43})$/m.exec(output)?.[1] ?? "";
    expect(output).toContain(`hash  ${sha256(key)}\n`);
    expect((await evenkeel(["key"])).output).not.toContain(key);
    const lines = output.slice(output.indexOf("keys:")).replace("NAME", "team");
    const read = readConfig({
      environment: {},
      flags: {},
      file: { name: "evenkeel.yaml", text: `endpoints: [a:1]\n${lines}` },
    });
    expect(read).toMatchObject({ ok: true, value: { keys: [{ id: "team", tenant: "team" }] } });
  });

  it("prints one JSON object when told to", async () => {
    const { output } = await evenkeel(["key", "--json"]);
    const { key, hash } = JSON.parse(output) as { readonly key: string; readonly hash: string };
    expect(hash).toBe(sha256(key));
  });

  it.each(["k3y", "k3y\n", "k3y\r\n"])("hashes the key it is given (%j)", async (input) => {
    expect(await evenkeel(["key", "--hash"], { input })).toEqual({ code: 0, output: `${sha256("k3y")}\n`, errors: "" });
    expect(JSON.parse((await evenkeel(["key", "--hash", "--json"], { input })).output)).toEqual({
      hash: sha256("k3y"),
    });
  });

  it.each(["", "\n", "two words", "two\nlines"])("does not take %j for a key", async (input) => {
    const { code, output, errors } = await evenkeel(["key", "--hash"], { input });
    expect([code, output]).toEqual([1, ""]);
    expect(errors).toMatch(/^error: expected a key on standard input/);
  });
});
