import { createHash, createPrivateKey, generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAuthority } from "../../test/support/certificates.ts";
import type { Config } from "./config.ts";
import { readConfig } from "./load-config.ts";
import { formatProblem } from "./problem.ts";

const read = (text: string) => readConfig({ file: { name: "evenkeel.yaml", text } });

function configOf(text: string): Config {
  const checked = read(text);
  if (!checked.ok) throw new Error(checked.problems.map(formatProblem).join("\n"));
  return checked.value;
}

function problemsOf(text: string): string[] {
  const checked = read(text);
  return checked.ok ? [] : checked.problems.map(formatProblem);
}

const hashOf = (key: string): string => `sha256:${createHash("sha256").update(key).digest("hex")}`;

describe("keys of clients", () => {
  it("stand for a tenant of their own and the normal priority unless they say otherwise", () => {
    const { keys } = configOf(
      `endpoints: [a:1]\nkeys:\n  - { id: one, hash: "${hashOf("1")}" }\n  - { id: two, hash: "${hashOf("2")}", tenant: team, priority: high, tokensPerMinute: 1000 }\n`,
    );
    expect(keys.map(({ tenant, priority, tokensPerMinute }) => [tenant, priority, tokensPerMinute])).toEqual([
      ["one", "normal", undefined],
      ["team", "high", 1000],
    ]);
    expect(keys[0]?.sha256).toEqual(createHash("sha256").update("1").digest());
  });

  it.each([
    ["a key in the place of its hash", "{ id: one, hash: sesame }", "keys[0].hash is"],
    ["two with one id", `{ id: one, hash: "${hashOf("1")}" }, { id: one, hash: "${hashOf("2")}" }`, "keys[1].id is"],
    ["one key twice", `{ id: one, hash: "${hashOf("1")}" }, { id: two, hash: "${hashOf("1")}" }`, "keys[1].hash is"],
    ["no limit at all", `{ id: one, hash: "${hashOf("1")}", requestsPerMinute: 0 }`, "keys[0].requestsPerMinute is 0"],
  ])("are refused with %s", (_what, entries, said) => {
    expect(problemsOf(`endpoints: [a:1]\nkeys: [${entries}]`).join("\n")).toContain(said);
  });
});

describe("discovery", () => {
  it("takes the place of endpoints, from a file or a name", () => {
    const [pool] = configOf(
      "discovery: [{ file: found.yaml }, { dns: 'https://llm.svc:8000/v1x/', interval: 3s }]",
    ).pools;
    expect(pool?.endpoints).toEqual([]);
    expect(pool?.discovery).toEqual([
      { kind: "file", path: "found.yaml" },
      { kind: "dns", scheme: "https", host: "llm.svc", port: 8000, basePath: "/v1x", intervalMs: 3000 },
    ]);
  });

  it.each([
    ["a name without a port", "discovery: [{ dns: llm.svc }]", "discovery[0].dns is"],
    ["file and name in one entry", "discovery: [{ dns: 'a:1', file: x }]", "discovery[0]"],
    ["a pool with neither endpoints nor discovery", "pools: [{ name: p }]", "pools[0].endpoints is"],
  ])("is refused with %s", (_what, text, said) => {
    expect(problemsOf(text).join("\n")).toContain(said);
  });
});

describe("TLS", () => {
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "evenkeel-tls-"));
    const { cert, key } = createAuthority().issue(["localhost"]);
    writeFileSync(join(folder, "cert.pem"), cert);
    writeFileSync(join(folder, "key.pem"), key);
    writeFileSync(join(folder, "text.txt"), "no certificate");
    const other = createAuthority().issue(["localhost"], -1);
    writeFileSync(join(folder, "other-cert.pem"), other.cert);
    writeFileSync(join(folder, "other-key.pem"), other.key);
    writeFileSync(join(folder, "chain.pem"), `# ours\n${cert}\n# theirs\n${other.cert}`);
    writeFileSync(join(folder, "all.pem"), key + cert);
    writeFileSync(join(folder, "cut.pem"), `${cert}${other.cert.slice(0, -30)}`);
    writeFileSync(join(folder, "broken.pem"), cert.replace(/[A-Za-z]{8}/, "AAAAAAAA").replace(/\n.{60}/, "\nAAAA"));
    const secret = { type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "sesame" } as const;
    writeFileSync(join(folder, "locked.pem"), createPrivateKey(key).export(secret));
    const weak = createAuthority().issue(["localhost"], 1, generateKeyPairSync("rsa", { modulusLength: 512 }));
    writeFileSync(join(folder, "weak.pem"), weak.cert + weak.key);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it("reads certificates and keys when the configuration is read, and shows no key", () => {
    const { tls } = configOf(`endpoints: [a:1]\ntls: { cert: ${folder}/cert.pem, key: ${folder}/key.pem }`);
    expect(tls?.cert).toContain("BEGIN CERTIFICATE");
    expect(tls?.key.reveal()).toContain("PRIVATE KEY");
    expect(JSON.stringify(tls)).not.toContain("PRIVATE KEY");
  });

  it("verifies endpoints unless one is told to be insecure", () => {
    const [pool] = configOf(
      `endpoints: [{ url: "https://a:1", tls: { ca: ${folder}/cert.pem } }, { url: "https://b:1", tls: { insecure: true } }]`,
    ).pools;
    expect(pool?.endpoints.map(({ tls }) => tls?.isVerified)).toEqual([true, false]);
  });

  it.each([
    ["a chain and its first certificate's key", "cert: FOLDER/chain.pem, key: FOLDER/key.pem"],
    ["certificate and key in one file", "cert: FOLDER/all.pem, key: FOLDER/all.pem"],
    ["a certificate that has expired, which is warned of", "cert: FOLDER/other-cert.pem, key: FOLDER/other-key.pem"],
    ["several authorities", "cert: FOLDER/cert.pem, key: FOLDER/key.pem, clientCa: FOLDER/chain.pem"],
  ])("takes %s", (_what, settings) => {
    expect(problemsOf(`endpoints: [a:1]\ntls: { ${settings} }`.replaceAll("FOLDER", folder))).toEqual([]);
  });

  it.each([
    ["of another certificate", "other-key.pem", "tls.key is FILE, expected the key of the certificate in `cert`"],
    [
      "that asks for a passphrase",
      "locked.pem",
      "tls.key is FILE, expected a file in PEM with one private key, without",
    ],
    ["that is a certificate", "cert.pem", "tls.key is FILE, expected a file in PEM with one private key"],
  ])("is refused with a key %s, whoever it is for", (_what, file, said) => {
    const tls = `tls: { cert: ${folder}/cert.pem, key: ${folder}/${file} }`;
    const quoted = JSON.stringify(`${folder}/${file}`);
    const [ofListener = ""] = problemsOf(`endpoints: [a:1]\n${tls}`);
    expect(ofListener).toContain(said.replace("FILE", quoted));
    const [ofEndpoint = ""] = problemsOf(`endpoints: [{ url: "https://a:1", ${tls} }]`);
    expect(ofEndpoint).toContain(`endpoints[0].${said.replace("FILE", quoted)}`);
  });

  it.each(["cert", "clientCa"])("is refused with a %s that is none, or not whole", (setting) => {
    const files = { cert: "cert.pem", key: "key.pem" };
    for (const file of ["key.pem", "cut.pem", "broken.pem"]) {
      const settings = Object.entries({ ...files, [setting]: file }).map(
        ([name, path]) => `${name}: ${folder}/${path}`,
      );
      const problems = problemsOf(`endpoints: [a:1]\ntls: { ${settings.join(", ")} }`);
      expect(problems).toEqual([expect.stringContaining(`tls.${setting} is`)]);
      expect(problems[0]).toContain("expected a file in PEM with certificates, each of them whole");
    }
  });

  it("is refused with a key that is too short to be of use", () => {
    const [problem] = problemsOf(`endpoints: [a:1]\ntls: { cert: ${folder}/weak.pem, key: ${folder}/weak.pem }`);
    expect(problem).toMatch(/tls\.cert is .*, expected a certificate that is strong enough for TLS \(ERR_SSL_\w+\)/);
  });

  it("shows no key that was written where its file should be named", () => {
    const key = createAuthority().issue([]).key.replaceAll("\n", "\\n");
    const problems = problemsOf(`endpoints: [a:1]\ntls: { cert: ${folder}/cert.pem, key: "${key}" }`);
    expect(problems).toEqual([expect.stringContaining("tls.key is PEM itself, expected a file that can be read")]);
  });

  it.each([
    ["a file without a name", 'tls: { cert: "", key: "" }', "tls.key is"],
    ["a file that is not there", "tls: { cert: nowhere.pem, key: nowhere.pem }", "tls.cert is"],
    ["a file that holds something else", "tls: { cert: FOLDER/text.txt, key: FOLDER/key.pem }", "a file in PEM"],
    ["a certificate without its key", "tls: { cert: FOLDER/cert.pem }", "`cert` and `key` together"],
    [
      "half a client certificate",
      "endpoints: [{ url: a:1, tls: { key: FOLDER/key.pem } }]",
      "`cert` and `key` together",
    ],
  ])("is refused with %s", (_what, text, said) => {
    const whole = text.startsWith("endpoints") ? text : `endpoints: [a:1]\n${text}`;
    expect(problemsOf(whole.replaceAll("FOLDER", folder)).join("\n")).toContain(said);
  });
});
