import { beforeAll, describe, expect, it } from "vitest";
import { type ClientCall, send } from "../../support/http-client.ts";
import { type BalancedLlama, startBalancedLlama } from "../harness/balanced-llama.ts";
import { ENDLESS_CHAT, llamaChat, startEndlessStream } from "../harness/chat.ts";
import { chatTextOf } from "../harness/events.ts";

let fleet: BalancedLlama;

beforeAll(async () => {
  fleet = await startBalancedLlama();
  return fleet.stop;
});

const SLOTS = 4;

async function total(read: (engine: BalancedLlama["engines"][number]) => Promise<number>): Promise<number> {
  const values = await Promise.all(fleet.engines.map(read));
  return values.reduce((sum, value) => sum + value, 0);
}

const busySlots = (): Promise<number> => total((engine) => engine.busySlots());
const decodes = (): Promise<number> => total((engine) => engine.metric("n_decode_total"));
const deferred = (): Promise<number> => total((engine) => engine.metric("requests_deferred"));

/** The client is gone: everything that was done for it has to end. */
async function expectAllFreed(): Promise<void> {
  await expect.poll(() => fleet.serve.openWork()).toBe(0);
  await expect.poll(busySlots).toBe(0);
  await expect.poll(deferred).toBe(0);
  expect(await fleet.serve.metric("requests_in_flight")).toBe(0);
}

function post(body: object): ClientCall {
  return send(`${fleet.serve.url}/v1/chat/completions`, { body });
}

describe("a client that leaves", () => {
  it("in the middle of its own body never reaches an engine", async () => {
    const before = { decodes: await decodes(), closed: await fleet.serve.outcomes("client_closed") };
    const call = send(`${fleet.serve.url}/v1/chat/completions`, { headers: { "content-length": "1000" } });
    call.request.write('{"model":"tiny","messages":[');
    await expect.poll(() => fleet.serve.metric("requests_in_flight")).toBe(1);
    call.abort();
    await expect.poll(() => fleet.serve.outcomes("client_closed")).toBe(before.closed + 1);
    await expectAllFreed();
    expect(await decodes()).toBe(before.decodes);
  });

  it("while its request is held until a slot is free is forgotten at once, and never reaches an engine", async () => {
    const held = () => fleet.serve.metric("endpoint_held_requests");
    const streams = await Promise.all(Array.from({ length: SLOTS }, () => startEndlessStream(fleet.serve.url)));
    const waiting = post({ ...ENDLESS_CHAT, stream: true });
    await expect.poll(held).toBe(1);
    waiting.abort();
    await expect.poll(() => fleet.serve.metric("requests_in_flight")).toBe(SLOTS);
    expect([await held(), await deferred()]).toEqual([0, 0]);
    for (const stream of streams) stream.abort();
    await expectAllFreed();
  });

  it("between the answer's head and its first token frees the slot", async () => {
    const call = post({ ...llamaChat(100, "keel and sail and ".repeat(700)), stream: true });
    call.request.on("error", () => {});
    // The engine sends the head when it gives the slot; the balancer keeps it back until there is more.
    await expect.poll(busySlots, { interval: 10 }).toBe(1);
    const seen = chatTextOf(call.text);
    call.abort();
    expect(seen).toBe("");
    await expectAllFreed();
  });

  it("in the middle of a stream ends the generation", async () => {
    const before = await decodes();
    const call = await startEndlessStream(fleet.serve.url);
    call.abort();
    await expectAllFreed();
    // One token a decode: had the engine gone on to the end, there would be 3500.
    expect((await decodes()) - before).toBeLessThan(3000);
  });

  it("while it waits for a whole answer frees the slot", async () => {
    // llama.cpp may run such a request to its end: this one is short enough to wait for that.
    const call = post(llamaChat(800));
    call.request.on("error", () => {});
    await expect.poll(busySlots).toBe(1);
    call.abort();
    await expect.poll(() => fleet.serve.openWork()).toBe(0);
    await expectAllFreed();
  });

  it("is counted each time", async () => {
    expect(await fleet.serve.outcomes("client_closed")).toBe(1 + SLOTS + 1 + 1 + 1 + 1);
    expect(await fleet.serve.outcomes("ok")).toBe(0);
  });
});
