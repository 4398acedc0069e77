import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { commandLine } from "../../test/support/command-line.ts";
import { run } from "./program.ts";

const evenkeel = commandLine(run);

const SECRET = "GHJKMN";

async function check(text: string, flags: readonly string[]) {
  const path = join(mkdtempSync(join(tmpdir(), "evenkeel-")), "evenkeel.yaml");
  writeFileSync(path, text);
  const { code, output, errors } = await evenkeel(["check", "--config", path, ...flags], {
    environment: { KEY: SECRET },
  });
  return { code, output: output + errors };
}

describe("evenkeel check", () => {
  it.each([
    ["of an endpoint", `endpoints: [{ url: "http://a:1", apiKey: ${SECRET} }]`, 0],
    ["of an endpoint, from a variable", `endpoints: [{ url: "http://a:1", apiKey: "\${KEY}" }]`, 0],
    ["in a URL's user", `endpoints: ["http://user:${SECRET}@a:1"]`, 1],
    ["in a URL's query", `endpoints: ["http://a:1/?key=${SECRET}"]`, 1],
    ["where its hash belongs", `endpoints: [a:1]\nkeys: [{ id: x, hash: ${SECRET} }]`, 1],
    ["where its hash belongs, of an operator", `endpoints: [a:1]\nadminKeys: [{ id: x, hash: "sha256:${SECRET}" }]`, 1],
    ["under a name that is no setting", `endpoints: [a:1]\nadminKeys: [{ id: x, key: ${SECRET} }]`, 1],
  ])("shows no key %s", async (_, text, expected) => {
    for (const flags of [[], ["--json"]]) {
      const { code, output } = await check(text, flags);
      expect(code).toBe(expected);
      expect(output).not.toBe("");
      expect(output).not.toContain(SECRET);
    }
  });
});
