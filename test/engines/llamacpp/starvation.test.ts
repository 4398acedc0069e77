import { beforeAll, expect, it } from "vitest";
import { type BalancedLlama, startBalancedLlama } from "../harness/balanced-llama.ts";
import { startEndlessStream } from "../harness/chat.ts";
import { chatTextOf } from "../harness/events.ts";

let fleet: BalancedLlama;

/** Each stream holds an HTTP thread, so this many leave none for probes. */
const HTTP_THREADS = 2;

beforeAll(async () => {
  fleet = await startBalancedLlama({
    count: 1,
    httpThreads: HTTP_THREADS,
    flags: ["--health-interval", "200ms", "--health-timeout", "300ms", "--health-unhealthy-after", "2"],
  });
  return fleet.stop;
});

it("does not take time-outs of probes for death while tokens flow", async () => {
  const { engines, serve } = fleet;
  const logBefore = serve.log;
  const streams = await Promise.all(Array.from({ length: HTTP_THREADS }, () => startEndlessStream(serve.url)));
  // Long enough for several probes of the balancer's own, which fare no better.
  const probe = fetch(`${engines[0]?.url}/health`, { signal: AbortSignal.timeout(3_000) });
  await expect(probe).rejects.toThrow("timeout");
  for (const stream of streams) expect(chatTextOf(stream.text)).not.toBe("");
  expect((await serve.endpoints()).map(({ availability }) => availability)).toEqual(["ready"]);
  expect(serve.log.slice(logBefore.length)).not.toContain("endpoint is down");
  for (const stream of streams) stream.abort();
  await expect.poll(() => serve.openWork()).toBe(0);
});
