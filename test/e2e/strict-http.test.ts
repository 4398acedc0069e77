import { describe, expect, it } from "vitest";
import { hold, ok, sse, startFake } from "../support/fake-upstream.ts";
import { CHAT, RawClient, rawPost, STREAMED_CHAT, send } from "../support/http-client.ts";
import { expectIdle, startGateway, type TestGateway } from "../support/test-gateway.ts";
import { until } from "../support/until.ts";

const PATH = "/v1/chat/completions";
const BODY = JSON.stringify(CHAT);
const SMUGGLED = rawPost("/v1/embeddings", { model: "m", input: "smuggled" });

/** Head and body of a POST with these lines in its head, and another request behind it. */
const withLines = (lines: string, body = BODY): string => `POST ${PATH} HTTP/1.1\r\nHost: x\r\n${lines}\r\n${body}`;
const chunked = (framed: string, lines = "Transfer-Encoding: chunked\r\n"): string => withLines(lines, framed);
const inChunk = (size: string): string => `${size}\r\n${BODY}\r\n0\r\n\r\n`;
const HEX = BODY.length.toString(16);

async function answerTo(gateway: TestGateway, bytes: string | Buffer): Promise<string> {
  return new RawClient(gateway.listenUrl).write(bytes).closes();
}

function errorOf(received: string): unknown {
  return JSON.parse(received.slice(received.indexOf("\r\n\r\n") + 4)).error;
}

const REFUSED: Readonly<Record<string, string | Buffer>> = {
  "both lengths": chunked(`0\r\n\r\n`, "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"),
  "both lengths, the other way round": chunked(`0\r\n\r\n`, "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n"),
  "two lengths": withLines(`Content-Length: ${BODY.length}\r\nContent-Length: 5\r\n`),
  "the same length twice": withLines(`Content-Length: ${BODY.length}\r\nContent-Length: ${BODY.length}\r\n`),
  "a list of lengths": withLines(`Content-Length: ${BODY.length}, ${BODY.length}\r\n`),
  "no digits for a length": withLines("Content-Length:\r\n"),
  "a signed length": withLines("Content-Length: +5\r\n"),
  "a negative length": withLines("Content-Length: -5\r\n"),
  "a length in hex": withLines("Content-Length: 0x5\r\n"),
  "a length with a fraction": withLines("Content-Length: 5.0\r\n"),
  "a length beyond all numbers": withLines("Content-Length: 99999999999999999999999\r\n"),
  "a length with a tab behind it": withLines(`Content-Length: ${BODY.length}\t\r\n`),
  "a tab behind chunked": chunked(inChunk(HEX), "Transfer-Encoding: chunked\t\r\n"),
  "a vertical tab before chunked": chunked(inChunk(HEX), "Transfer-Encoding: \x0bchunked\r\n"),
  "an unknown transfer coding": chunked(inChunk(HEX), "Transfer-Encoding: xchunked\r\n"),
  "a comma behind chunked": chunked(inChunk(HEX), "Transfer-Encoding: chunked,\r\n"),
  "a comma before chunked": chunked(inChunk(HEX), "Transfer-Encoding: ,chunked\r\n"),
  "a coding besides chunked": chunked(inChunk(HEX), "Transfer-Encoding: gzip, chunked\r\n"),
  "chunked and a coding behind it": chunked(inChunk(HEX), "Transfer-Encoding: chunked, identity\r\n"),
  "chunked twice": chunked(inChunk(HEX), "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
  "identity and then chunked": chunked(inChunk(HEX), "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n"),
  "identity alone": withLines("Transfer-Encoding: identity\r\n"),
  "chunked in quotes": chunked(inChunk(HEX), 'Transfer-Encoding: "chunked"\r\n'),
  "chunked with a parameter": chunked(inChunk(HEX), "Transfer-Encoding: chunked;q=1\r\n"),
  "an empty transfer coding": withLines("Transfer-Encoding:\r\n", SMUGGLED),
  "an empty transfer coding and a length": withLines(`Transfer-Encoding:\r\nContent-Length: ${BODY.length}\r\n`),
  "a space before the colon": withLines(`Content-Length : ${BODY.length}\r\n`),
  "a tab before the colon": withLines("X-A\t: 1\r\n"),
  "a space before the first header": `POST ${PATH} HTTP/1.1\r\n Host: x\r\nHost: x\r\n\r\n`,
  "a folded header": withLines("X-A: 1\r\n b\r\n"),
  "a folded length": withLines(`Content-Length:\r\n ${BODY.length}\r\n`),
  "a folded transfer coding": chunked(inChunk(HEX), "Transfer-Encoding:\r\n chunked\r\n"),
  "line feeds alone": withLines(`Content-Length: ${BODY.length}\r\n`).replaceAll("\r\n", "\n"),
  "a line feed alone behind a header": withLines(`X-A: b\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n`),
  "a line feed alone at the head's end": `POST ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\nabcd`,
  "a carriage return alone": withLines("X-A: a\rTransfer-Encoding: chunked\r\n"),
  "a NUL in a value": withLines("X-A: a\0b\r\n"),
  "a NUL in a name": withLines("X\0A: b\r\n"),
  "a NUL in the target": `GET /a\0b HTTP/1.1\r\nHost: x\r\n\r\n`,
  "a NUL behind chunked": chunked(inChunk(HEX), "Transfer-Encoding: chunked\0\r\n"),
  "a control character in a value": withLines("X-A: a\x01b\r\n"),
  "a byte beyond ASCII in a name": Buffer.from(withLines("X\xe9: a\r\n"), "latin1"),
  "a header without a colon": withLines("XA\r\n"),
  "a header without a name": withLines(": a\r\n"),
  "no host": `POST ${PATH} HTTP/1.1\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`,
  "two hosts": withLines(`Host: y\r\nContent-Length: ${BODY.length}\r\n`),
  "a host that is none": rawPost(PATH, CHAT).replace("Host: x", "Host: a/b@c"),
  "a fragment in the target": rawPost(`${PATH}#a`, CHAT),
  "a target without a slash": rawPost("v1/chat/completions", CHAT),
  "a space in the target": rawPost(`${PATH} x`, CHAT),
  "another version": rawPost(PATH, CHAT, { version: "2.0" }),
  "the oldest version": `GET /v1/models\r\n\r\n`,
  "HTTP/2 by prior knowledge": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  "an unknown method": "FOO /v1/models HTTP/1.1\r\nHost: x\r\n\r\n",
  "a TLS handshake": Buffer.from([0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0]),
};

const BAD_CHUNKS: Readonly<Record<string, string>> = {
  "a line feed alone behind its size": `${HEX}\n${BODY}\r\n0\r\n\r\n`,
  "a line feed alone behind its data": `${HEX}\r\n${BODY}\n0\r\n\r\n`,
  "a line feed in its extension": `${HEX};a\n${BODY}\r\n0\r\n\r\n`,
  "more data than its size says": `${HEX}\r\n${BODY}XX\r\n0\r\n\r\n`,
  "a size in C notation": inChunk(`0x${HEX}`),
  "a signed size": inChunk(`+${HEX}`),
  "a space behind its size": inChunk(`${HEX} `),
  "no size": inChunk(""),
  "a size beyond all numbers": inChunk("10000000000000004"),
  "a length in its trailer": `${HEX}\r\n${BODY}\r\n0\r\nContent-Length: 5\r\n\r\n`,
};

describe("a request with", () => {
  it.each(Object.entries(REFUSED))(
    "%s is refused, and nothing on its connection reaches an endpoint",
    async (_, bytes) => {
      const e1 = await startFake(ok());
      const gateway = await startGateway([e1]);
      const received = await answerTo(gateway, Buffer.concat([Buffer.from(bytes), Buffer.from(SMUGGLED)]));
      expect(received).toMatch(/^HTTP\/1.1 400 Bad Request\r\n[\s\S]*connection: close/i);
      expect(received).toMatch(/x-evenkeel-reason: malformed_request/i);
      expect(errorOf(received)).toMatchObject({ type: "invalid_request_error", code: "malformed_request" });
      expect(e1.calls).toHaveLength(0);
      expect(await gateway.outcomes()).toEqual({ malformed_request: 1 });
      await expectIdle(gateway);
    },
  );

  it.each(Object.entries(BAD_CHUNKS))("a chunk with %s is refused with its body", async (_, framed) => {
    const e1 = await startFake(ok());
    const gateway = await startGateway([e1]);
    const client = new RawClient(gateway.listenUrl).write(chunked(framed) + SMUGGLED);
    const received = await client.receives(/\r\n\r\n\{.*\}$/);
    expect(received).toMatch(/^HTTP\/1.1 400 Bad Request\r\n[\s\S]*connection: close/i);
    client.socket.destroy();
    expect(errorOf(received)).toMatchObject({ code: "malformed_request" });
    expect(e1.calls).toHaveLength(0);
    expect(await gateway.outcomes()).toEqual({ malformed_request: 1 });
    await expectIdle(gateway);
  });

  it("fewer bytes than it declared is refused, and counted as left", async () => {
    const e1 = await startFake(ok());
    const gateway = await startGateway([e1]);
    const client = new RawClient(gateway.listenUrl).write(withLines("Content-Length: 1000\r\n"));
    client.socket.end();
    expect(await client.closes()).toMatch(/^HTTP\/1.1 400 /);
    await until(async () => (await gateway.outcomes()).client_closed === 1);
    expect(e1.calls).toHaveLength(0);
    await expectIdle(gateway);
  });

  it("more bytes than it declared is answered, and what is beyond is refused", async () => {
    const e1 = await startFake(ok());
    const gateway = await startGateway([e1]);
    const received = await answerTo(gateway, `${rawPost(PATH, CHAT)}beyond`);
    expect(received).toMatch(/^HTTP\/1.1 200 OK[\s\S]*HTTP\/1.1 400 Bad Request/);
    expect(e1.calls).toHaveLength(1);
    expect(await gateway.outcomes()).toEqual({ ok: 1, malformed_request: 1 });
  });

  it("chunk extensions and trailers is one clean request to its endpoint", async () => {
    const e1 = await startFake(ok());
    const gateway = await startGateway([e1]);
    const client = new RawClient(gateway.listenUrl);
    client.write(chunked(`${HEX};a="b";c\r\n${BODY}\r\n0\r\nX-Trailer: 1\r\n\r\n`));
    await client.receives(/^HTTP\/1.1 200 OK/);
    const call = await e1.call(0);
    expect(call.body.toString()).toBe(BODY);
    expect(call.headers).toMatchObject({ "content-length": String(BODY.length) });
    expect(Object.keys(call.headers)).not.toEqual(expect.arrayContaining(["transfer-encoding", "x-trailer"]));
    client.socket.destroy();
  });

  it("headers in their thousands is refused, whatever is the last of them", async () => {
    const e1 = await startFake(ok());
    const gateway = await startGateway([e1]);
    const lines = Array.from({ length: 2_100 }, (_, i) => `a${i}: 1\r\n`).join("");
    const received = await answerTo(gateway, withLines(`${lines}Content-Length: ${BODY.length}\r\n`));
    expect(received).toMatch(/^HTTP\/1.1 431 /);
    expect(errorOf(received)).toMatchObject({ code: "head_too_large", message: "There are more than 256 headers." });
    expect(await gateway.outcomes()).toEqual({ head_too_large: 1 });
  });

  it("a head over the limit is refused in the API's shape", async () => {
    const gateway = await startGateway([await startFake()]);
    const received = await answerTo(gateway, withLines(`X-Long: ${"a".repeat(40_000)}\r\n`));
    expect(received).toMatch(/^HTTP\/1.1 431 Request Header Fields Too Large\r\n[\s\S]*connection: close/);
    expect(errorOf(received)).toMatchObject({
      code: "head_too_large",
      message: expect.stringContaining("32768 bytes"),
    });
    expect(await gateway.outcomes()).toEqual({ head_too_large: 1 });
  });

  it("HTTP/1.0 and chunks is refused", async () => {
    const gateway = await startGateway([await startFake()]);
    const request = chunked(inChunk(HEX)).replace("HTTP/1.1", "HTTP/1.0");
    expect(await answerTo(gateway, request)).toMatch(/^HTTP\/1.1 400 /);
  });
});

describe("other protocols", () => {
  it("by CONNECT are refused", async () => {
    const gateway = await startGateway([await startFake()]);
    const received = await answerTo(
      gateway,
      "CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    );
    expect(received).toMatch(/^HTTP\/1.1 405 Method Not Allowed\r\n/);
    expect(received).toMatch(/allow: GET, HEAD, POST\r\n/);
    expect(received.match(/^HTTP/gm)).toHaveLength(1);
    expect(await gateway.outcomes()).toEqual({ method_not_allowed: 1 });
  });

  it.each(["websocket", "h2c, websocket", "TLS/1.0"])("by an upgrade to %s are refused", async (protocol) => {
    const e1 = await startFake(ok());
    const gateway = await startGateway([e1]);
    const headers = `Connection: keep-alive, Upgrade\r\nUpgrade: ${protocol}\r\n`;
    const received = await answerTo(gateway, rawPost(PATH, CHAT, { headers }) + SMUGGLED);
    expect(received).toMatch(/^HTTP\/1.1 400 [\s\S]*upgrade_refused/);
    expect(received.match(/^HTTP/gm)).toHaveLength(1);
    expect(e1.calls).toHaveLength(0);
  });

  it("that are only offered are passed over: HTTP/2, as some clients do with their first request", async () => {
    const e1 = await startFake(ok());
    const gateway = await startGateway([e1]);
    const headers = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n";
    const client = new RawClient(gateway.listenUrl).write(rawPost(PATH, CHAT, { headers }));
    expect(await client.receives(/^HTTP\/1.1 200 OK/)).not.toMatch(/upgrade/i);
    const seen = Object.keys((await e1.call(0)).headers);
    for (const name of ["upgrade", "http2-settings"]) expect(seen).not.toContain(name);
    client.socket.destroy();
  });
});

describe("a connection that cannot be understood any more", () => {
  it("carries the answer it owes first, and then the refusal", async () => {
    const e1 = await startFake(hold);
    const gateway = await startGateway([e1]);
    const client = new RawClient(gateway.listenUrl).write(`${rawPost(PATH, CHAT)}GARBAGE\r\n\r\nMORE GARBAGE\r\n\r\n`);
    const call = await e1.call(0);
    client.write("AND MORE\r\n\r\n");
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(client.received).toBe("");
    ok("first")(call);
    const received = await client.closes();
    expect(received.match(/HTTP\/1.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 400"]);
    expect(await gateway.outcomes()).toEqual({ ok: 1, malformed_request: 1 });
  });

  it.each([
    { what: "chunks that are none", behind: chunked("no chunk\r\n"), ends: false },
    { what: "half of its body", behind: withLines("Content-Length: 1000\r\n"), ends: true },
  ])("by a second request with $what carries the first answer, and then the refusal", async ({ behind, ends }) => {
    const e1 = await startFake(sse(20, 10));
    const gateway = await startGateway([e1]);
    const client = new RawClient(gateway.listenUrl).write(rawPost(PATH, STREAMED_CHAT) + behind);
    if (ends) client.socket.end();
    const received = await client.closes();
    expect(received).toMatch(/data: \[DONE\]\n\n\r\n0\r\n\r\nHTTP\/1.1 400 /);
    expect(received.match(/^HTTP|\nHTTP/g)).toHaveLength(2);
    expect(e1.calls).toHaveLength(1);
    expect(await gateway.outcomes()).toEqual({ ok: 1, malformed_request: 1 });
    await expectIdle(gateway);
  });

  it("is closed behind a refusal whose body was not whole", async () => {
    const gateway = await startGateway([await startFake()]);
    const head = "POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n";
    const client = new RawClient(gateway.listenUrl).write(head);
    await client.receives(/404 Not Found[\s\S]*\}$/);
    client.socket.end();
    expect((await client.closes()).match(/^HTTP/gm)).toHaveLength(1);
  });

  it("lets a stream that runs on it end well", async () => {
    const e1 = await startFake(sse(20, 10));
    const gateway = await startGateway([e1]);
    const client = new RawClient(gateway.listenUrl).write(rawPost(PATH, STREAMED_CHAT));
    await client.receives(/t1 /);
    client.write("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n");
    const received = await client.closes();
    expect(received).toMatch(/data: \[DONE\]\n\n\r\n0\r\n\r\nHTTP\/1.1 405 /);
    expect(await gateway.outcomes()).toEqual({ ok: 1, method_not_allowed: 1 });
  });

  it("is closed when it sends requests without end ahead of their answers", async () => {
    const e1 = await startFake(hold);
    const gateway = await startGateway([e1]);
    const client = new RawClient(gateway.listenUrl).write(rawPost(PATH, CHAT));
    await e1.call(0);
    client.write("GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100));
    await client.closes();
    await until(async () => (await gateway.outcomes()).client_closed === 1);
    await expectIdle(gateway);
  });

  it("disturbs no other", async () => {
    const e1 = await startFake(sse(30, 10));
    const gateway = await startGateway([e1]);
    const streams = Array.from({ length: 10 }, () => send(`${gateway.listenUrl}${PATH}`, { body: STREAMED_CHAT }));
    for (const bytes of Object.values(REFUSED)) {
      const client = new RawClient(gateway.listenUrl).write(bytes);
      if (Math.random() < 0.5) client.socket.resetAndDestroy();
    }
    for (const stream of streams) expect(await stream.answer()).toMatchObject({ status: 200, isWhole: true });
    await expectIdle(gateway);
  });
});
