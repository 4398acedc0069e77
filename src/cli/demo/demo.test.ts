import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import { runDemo } from "./demo.ts";
import { type DemoPicture, renderDemo } from "./view.ts";

const PICTURE: DemoPicture = {
  policy: "least_delay",
  score: "price in ms, lowest wins",
  elapsedSeconds: 12.4,
  answered: 30,
  failed: 0,
  times: { firstTokenMs: 84.6, wholeMs: 2140 },
  endpoints: [
    {
      id: "engine-1",
      speed: 1,
      sentRequests: 30,
      waitingRequests: 1,
      runningRequests: 8,
      prefillTokens: 10_686,
      outputTokens: 1398,
      tokensPerSecond: 2254.4,
    },
    {
      id: "engine-2",
      speed: 0.2,
      sentRequests: 10,
      waitingRequests: 0,
      runningRequests: 2,
      prefillTokens: 0,
      outputTokens: 297,
      tokensPerSecond: 451,
    },
  ],
  decisions: [
    {
      promptTokens: 322,
      cachedTokens: 192,
      endpoint: "engine-1",
      scores: [
        { endpoint: "engine-1", score: 649.3 },
        { endpoint: "engine-2", score: 25.111 },
      ],
    },
  ],
  curl: ["curl http://127.0.0.1:8080/v1/models"],
};

describe("the demo's picture", () => {
  it("shows endpoints with their work and share, decisions with what was compared, and a line to copy", () => {
    expect(stripVTControlCharacters(renderDemo(PICTURE))).toMatchInlineSnapshot(`
      "evenkeel demo  policy least_delay  12 s  30 answered  first token 85 ms, whole answer 2.1 s

      endpoint    speed  learned tok/s   waiting  running   prefill   to decode   share of requests
      engine-1       1x           2254         1        8     10686        1398   ███████████████      75 %
      engine-2     0.2x            451         0        2         0         297   █████                25 %

      latest decisions, by price in ms, lowest wins
         322 tok (192 cached)    engine-1  engine-1 649  engine-2 25.1

      send one yourself:
      curl http://127.0.0.1:8080/v1/models

      Ctrl-C stops the demo."
    `);
  });

  it("says so when requests failed", () => {
    expect(stripVTControlCharacters(renderDemo({ ...PICTURE, failed: 2 }))).toContain("30 answered  2 failed");
  });
});

describe("the demo", () => {
  it("balances traffic over four engines and shows it, until it is interrupted", async () => {
    const answered = new AbortController();
    const pictures: string[] = [];
    const screen = {
      isLive: true,
      write: (text: string) => {
        pictures.push(stripVTControlCharacters(text));
        if (/ [1-9]\d* answered/.test(text)) answered.abort();
      },
    };
    const options = { policy: "round_robin", listen: "127.0.0.1:0", requestsPerSecond: 20, seconds: undefined };
    await runDemo(options, screen, answered.signal);
    const last = pictures.at(-1) ?? "";
    expect(last).toMatch(/policy round_robin {2}\d+ s {2}[1-9]\d* answered {2}first token \d+ ms, whole answer /);
    for (const engine of ["engine-1", "engine-2", "engine-3", "engine-4"])
      expect(last).toMatch(new RegExp(`^${engine} .* \\d+ %$`, "m"));
    expect(last).toContain("latest decisions, by requests since its last turn");
    expect(last).toMatch(/curl -N http:\/\/127\.0\.0\.1:\d+\/v1\/chat\/completions/);
  });

  it("ends by itself after the seconds it was given", async () => {
    const screen = { isLive: false, write: () => {} };
    const options = { policy: "least_delay", listen: "127.0.0.1:0", requestsPerSecond: 5, seconds: 0.2 };
    await runDemo(options, screen, new AbortController().signal);
  });
});
