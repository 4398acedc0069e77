import { randomInt } from "node:crypto";
import { inspect } from "node:util";
import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { Secret } from "../../src/config/index.ts";
import { createAuthority } from "../support/certificates.ts";
import { clientKey, keyHash } from "../support/client-key.ts";
import { code, ok, REFUSING_URL, raw, rstAt, startFake } from "../support/fake-upstream.ts";
import { CHAT, exchange, RawClient, rawPost, type SendOptions, STREAMED_CHAT } from "../support/http-client.ts";
import { testConfig, testEndpoint, testPool } from "../support/test-config.ts";
import { runGateway, type TestGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";

/** No hex digit among them, so that no request id and no hash can hold one by chance. */
const LETTERS = "GHJKLMNPQRSTUVWXYZ";
const secrets: string[] = [];

/** Too short and too plain for anything that looks for keys by their looks. */
function secret(): string {
  const made = Array.from({ length: 6 }, () => LETTERS[randomInt(LETTERS.length)]).join("");
  secrets.push(made);
  return made;
}

const keys = { client: secret(), other: secret(), admin: secret(), endpoint: secret(), down: secret(), tls: secret() };
const authority = createAuthority();
const shown = authority.issue(["gateway"]);
secrets.push(...shown.key.split("\n").filter((line) => line.length > 20 && !line.startsWith("-----")));

/** Everything that leaves the process: log lines, answers, metrics, admin pages, dumps. */
class Outputs {
  readonly lines: string[] = [];

  add(text: string): void {
    this.lines.push(text);
  }

  async answer(url: string, options: SendOptions): Promise<number> {
    const { status, rawHeaders, text } = await exchange(url, options);
    this.add(JSON.stringify(rawHeaders) + text);
    return status;
  }

  expectClean(): void {
    const all = this.lines.join("\n");
    for (const word of secrets) {
      const at = all.indexOf(word);
      expect(at === -1 ? "" : all.slice(Math.max(0, at - 200), at + 20)).toBe("");
      expect(all).not.toContain(Buffer.from(word).toString("base64").replace(/=*$/, "").slice(0, -1));
      expect(all).not.toContain(Buffer.from(word).toString("hex"));
    }
  }
}

async function start(outputs: Outputs): Promise<{ gateway: TestGateway; seenByEngine: () => unknown[] }> {
  const e1 = await startFake();
  const guarded = await startFake(ok(), { tls: authority.issue(["127.0.0.1"]) });
  const pool = (name: string, url: string, key: string, tls = {}) => ({
    ...testPool([], { name, models: [name] }),
    endpoints: [testEndpoint(name, url, { apiKey: new Secret(key), ...tls })],
  });
  const tls = {
    ca: createAuthority("other").cert,
    cert: shown.cert,
    key: new Secret(shown.key),
    serverName: undefined,
    isVerified: true,
  };
  const config = testConfig([], {
    keys: [clientKey("team", keys.client, { requestsPerMinute: 100 }), clientKey("few", keys.other, { models: ["x"] })],
    adminKeys: [keyHash("operator", keys.admin)],
    pools: [
      pool("m", e1.url, keys.endpoint),
      pool("down", REFUSING_URL, keys.down),
      pool("untrusted", guarded.url, keys.tls, { tls }),
      pool("broken", e1.url, `${secret()}\n${secret()}`),
    ],
  });
  const log = pino({ level: "trace" }, { write: (line: string) => outputs.add(line) });
  const gateway = await runGateway(config, { log });
  await until(() => gateway.runtime.directory.names.length > 0);
  e1.next(ok(), code(500, "no"), code(429, "busy"), rstAt(0), rstAt(2), raw("HTTP/1.1 2x0 Bad\r\n\r\n"));
  return { gateway, seenByEngine: () => e1.calls.map(({ headers }) => headers.authorization) };
}

describe("keys", () => {
  it("leave the process in no log, answer, metric, admin page or dump, whatever goes wrong", async () => {
    const outputs = new Outputs();
    const { gateway, seenByEngine } = await start(outputs);
    const url = `${gateway.listenUrl}${PATH}`;
    const mine = { authorization: `Bearer ${keys.client}` };
    const wrong = secret();

    expect(await outputs.answer(url, { body: CHAT, headers: mine })).toBe(200);
    expect(seenByEngine()).toEqual([`Bearer ${keys.endpoint}`]);
    for (let i = 0; i < 5; i++) await outputs.answer(url, { body: i === 3 ? STREAMED_CHAT : CHAT, headers: mine });
    for (const model of ["down", "untrusted", "broken", "nobody"]) {
      await outputs.answer(url, { body: { ...CHAT, model }, headers: mine });
    }
    const query = `?key=${secret()}&api_key=${secret()}`;
    await outputs.answer(url + query, { body: CHAT, headers: { "x-api-key": keys.client } });
    await outputs.answer(url, { body: `{"key": "${secret()}", nonsense`, headers: mine });
    await outputs.answer(url, { body: CHAT, headers: { authorization: `Bearer ${keys.other}` } });
    for (const headers of [{ authorization: `Bearer ${wrong}` }, { authorization: wrong }, { "x-api-key": wrong }]) {
      expect(await outputs.answer(url, { body: CHAT, headers })).toBe(401);
    }
    await outputs.answer(`${gateway.listenUrl}/nowhere${query}`, { body: CHAT, headers: mine });

    const lines = `Authorization: Bearer ${keys.client}\r\nX-Api-Key: ${wrong}\r\n`;
    for (const request of [
      rawPost(`http://user:${secret()}@127.0.0.1${PATH}`, CHAT, { headers: lines }),
      rawPost(PATH, CHAT, { headers: `${lines}Content-Length: 1\r\n` }),
      rawPost(PATH, CHAT, { headers: `${lines}X-Bad\0: 1\r\n` }),
      rawPost(PATH, CHAT, { headers: `${lines}X-Long: ${"a".repeat(40_000)}\r\n` }),
      rawPost(PATH, CHAT, { headers: `${lines}Connection: upgrade\r\nUpgrade: websocket\r\n` }),
      `CONNECT user:${secret()}@127.0.0.1:1 HTTP/1.1\r\n${lines}\r\n`,
      `POST ${PATH} HTTP/1.1\r\nHost: x\r\n${lines}Transfer-Encoding: chunked\r\n\r\n${secret()}\r\n`,
    ]) {
      const client = new RawClient(gateway.listenUrl).write(request);
      outputs.add(await client.receives(/\r\n\r\n/));
      client.socket.destroy();
    }

    const operator = { authorization: `Bearer ${keys.admin}` };
    for (const path of ["/metrics", "/admin/endpoints", "/healthz", "/readyz", "/admin/nothing"]) {
      for (const headers of [operator, { authorization: `Bearer ${wrong}` }]) {
        await outputs.answer(gateway.admin + path + query, { method: "GET", headers });
      }
    }
    const question = { headers: { authorization: `Bearer ${keys.client}` }, body: CHAT };
    await outputs.answer(`${gateway.admin}/admin/explain`, { body: question, headers: operator });
    outputs.add(inspect(gateway.runtime, { depth: 12, showHidden: true }));
    outputs.add(JSON.stringify(gateway.runtime.config));
    await gateway.close();

    expect(outputs.lines.join("")).toMatch(/"level":20/);
    expect(outputs.lines.join("")).toMatch(/ECONNREFUSED[\s\S]*UNABLE_TO_|UNABLE_TO_[\s\S]*ECONNREFUSED/);
    outputs.expectClean();
  });
});
