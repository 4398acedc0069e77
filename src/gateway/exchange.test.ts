import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ServerResponse } from "node:http";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { startFake } from "../../test/support/fake-upstream.ts";
import { CHAT, exchange, send } from "../../test/support/http-client.ts";
import { expectIdle, startGateway } from "../../test/support/test-gateway.ts";
import { until } from "../../test/support/until.ts";
import { LoopTurns } from "./request/loop-turns.ts";

const PATH = "/v1/chat/completions";

/** A chat request of a little more than `bytes`. */
function chatOf(bytes: number): object {
  return { ...CHAT, messages: [{ role: "user", content: "word ".repeat(bytes / 5) }] };
}

/** Turns of the event loop that are given when the test says so. */
function heldTurns(): (() => void)[] {
  const held: (() => void)[] = [];
  const next = vi.spyOn(LoopTurns.prototype, "next").mockImplementation(
    () =>
      new Promise((resolve) => {
        held.push(resolve);
      }),
  );
  onTestFinished(() => next.mockRestore());
  return held;
}

/** Resolves when the balancer has seen that the client of its next request left. */
function clientLeft(): Promise<void> {
  return new Promise((resolve) => {
    const watch = (message: unknown): void => {
      (message as { readonly response: ServerResponse }).response.once("close", resolve);
    };
    subscribe("http.server.request.start", watch);
    onTestFinished(() => void unsubscribe("http.server.request.start", watch));
  });
}

describe("a long body", () => {
  it("waits for a turn of the event loop before it is read, and short ones do not wait behind it", async () => {
    const turns = heldTurns();
    const e1 = await startFake();
    const gateway = await startGateway([e1]);
    const long = send(`${gateway.listenUrl}${PATH}`, { body: chatOf(100_000) });
    await until(() => turns.length === 1);
    expect((await exchange(`${gateway.listenUrl}${PATH}`, { body: chatOf(1000) })).status).toBe(200);
    expect(e1.calls).toHaveLength(1);
    turns.shift()?.();
    expect((await long.answer()).status).toBe(200);
    expect(e1.calls).toHaveLength(2);
    expect(turns).toEqual([]);
  });

  it("whose client leaves while it waits costs nothing more", async () => {
    const turns = heldTurns();
    const e1 = await startFake();
    const gateway = await startGateway([e1]);
    const left = clientLeft();
    const client = send(`${gateway.listenUrl}${PATH}`, { body: `{"model": ${"x".repeat(100_000)}` });
    await until(() => turns.length === 1);
    client.abort();
    await left;
    turns.shift()?.();
    await expectIdle(gateway);
    // Read, it would have been refused.
    expect(await gateway.outcomes()).toEqual({ client_closed: 1 });
  });
});
