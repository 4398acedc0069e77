import { connect, createServer } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { DONE_EVENT, headThenHold, startFake, tokenEvent } from "../support/fake-upstream.ts";
import { type ClientCall, STREAMED_CHAT, send } from "../support/http-client.ts";
import { until } from "../support/until.ts";
import { isAlive, runWorkerBalancer, startWorkerBalancer, type WorkerBalancer } from "../support/worker-processes.ts";

const PATH = "/v1/chat/completions";
const SLOW = 60_000;

/** A balancer with four streams that have begun, each over a connection of its own. */
async function busyBalancer(): Promise<{
  readonly balancer: WorkerBalancer;
  readonly workers: readonly number[];
  /** Lets the streams end, and says of each whether its client has all of it. */
  finish(): Promise<readonly boolean[]>;
}> {
  const e1 = await startFake(headThenHold);
  const balancer = await startWorkerBalancer({ endpoints: [e1.url] });
  const clients: ClientCall[] = [];
  for (let i = 0; i < 4; i++) {
    const client = send(`${balancer.listenUrl}${PATH}`, { body: STREAMED_CHAT });
    (await e1.call(i)).response.write(tokenEvent(0));
    await client.receives(tokenEvent(0));
    clients.push(client);
  }
  return {
    balancer,
    workers: balancer.workers(),
    async finish() {
      for (const { response } of e1.calls) response.end(DONE_EVENT);
      const answers = await Promise.all(clients.map((client) => client.answer()));
      return answers.map(({ isWhole, text }) => isWhole && text.endsWith(DONE_EVENT));
    },
  };
}

const WHOLE = [true, true, true, true];
const BROKEN = [false, false, false, false];

describe("a balancer of several processes that is told to stop", () => {
  it.each(["SIGTERM", "SIGINT"] as const)(
    "by %s lets streams finish and takes nothing new, also where the signal goes to the whole group",
    async (signal) => {
      const { balancer, workers, finish } = await busyBalancer();
      process.kill(-(balancer.primary.pid as number), signal);
      await until(async () => (await fetch(`${balancer.admin}/readyz`)).status === 503);
      expect((await fetch(`${balancer.admin}/livez`)).status).toBe(200);
      await until(() => refuses(balancer));
      expect(await finish()).toEqual(WHOLE);
      expect(await balancer.ended()).toEqual({ code: 0, signal: null });
      expect(workers.filter(isAlive)).toEqual([]);
      expect(balancer.errors()).toBe("");
    },
    SLOW,
  );

  it(
    "twice ends at once, with all of its processes",
    async () => {
      const { balancer, workers, finish } = await busyBalancer();
      const { primary } = balancer;
      primary.kill("SIGTERM");
      await balancer.logged({ msg: "stopping once running requests are done" });
      primary.kill("SIGTERM");
      expect(await balancer.ended()).toEqual({ code: null, signal: "SIGTERM" });
      await until(() => !workers.some(isAlive));
      expect(await finish()).toEqual(BROKEN);
    },
    SLOW,
  );

  it(
    "by Ctrl-C while it starts says nothing of workers that end by it too, and leaves no process behind",
    async () => {
      const balancer = runWorkerBalancer({ endpoints: ["127.0.0.1:1"] });
      await until(() => balancer.workers().length === 2);
      const workers = balancer.workers();
      process.kill(-(balancer.primary.pid as number), "SIGINT");
      expect(await balancer.ended()).toEqual({ code: 0, signal: null });
      expect(balancer.errors()).toBe("");
      await until(() => !workers.some(isAlive));
    },
    SLOW,
  );

  it(
    "by nobody, killed while it starts, leaves no process behind",
    async () => {
      const balancer = runWorkerBalancer({ endpoints: ["127.0.0.1:1"] });
      await until(() => balancer.workers().length === 2);
      const workers = balancer.workers();
      balancer.primary.kill("SIGKILL");
      await until(() => !workers.some(isAlive));
    },
    SLOW,
  );

  it(
    "by nobody, killed, leaves no process behind",
    async () => {
      const { balancer, workers } = await busyBalancer();
      balancer.primary.kill("SIGKILL");
      await until(() => !workers.some(isAlive));
    },
    SLOW,
  );
});

describe("a balancer of several processes that cannot start", () => {
  it(
    "says why in one line, as one of one process does, and exits with 1",
    async () => {
      const taken = createServer();
      onTestFinished(() => void taken.close());
      await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
      const { port } = taken.address() as { readonly port: number };
      const address = `127.0.0.1:${port}`;
      for (const [settings, reason] of [
        [
          { listen: address },
          `cannot listen on ${address}: the address is in use; choose another, or stop what has it`,
        ],
        [{ admin: address }, `cannot listen on ${address}: the address is in use; choose another, or stop what has it`],
        [{ recording: { file: "/" } }, "cannot record to /: EISDIR"],
      ] as const) {
        const balancer = runWorkerBalancer({ endpoints: ["127.0.0.1:1"], ...settings });
        expect(await balancer.ended()).toEqual({ code: 1, signal: null });
        expect(balancer.errors()).toBe(`error: ${reason}\n`);
        expect(balancer.workers()).toEqual([]);
      }
    },
    SLOW,
  );
});

function refuses({ listenUrl }: WorkerBalancer): Promise<boolean> {
  const { hostname, port } = new URL(listenUrl);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on("connect", () => {
      socket.destroy();
      resolve(false);
    });
    socket.on("error", () => resolve(true));
  });
}
