import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { callAdmin, endpointPath } from "../support/admin-client.ts";
import { keyHash } from "../support/client-key.ts";
import {
  DONE_EVENT,
  type FakeUpstream,
  headThenHold,
  ok,
  sse,
  startFake,
  tokenEvent,
} from "../support/fake-upstream.ts";
import { CHAT, type ClientCall, exchange, STREAMED_CHAT, send } from "../support/http-client.ts";
import { until } from "../support/until.ts";
import { fileOf, startWorkerBalancer, type WorkerBalancer } from "../support/worker-processes.ts";

const PATH = "/v1/chat/completions";

/** Whole processes start and end. */
const SLOW = 60_000;

/** A stream that has begun and goes on as the test says. */
interface OpenStream {
  readonly client: ClientCall;
  readonly call: FakeUpstream["calls"][number];
}

/** Begins streams, each over a connection of its own. */
async function openStreams({ listenUrl }: WorkerBalancer, fake: FakeUpstream, count: number): Promise<OpenStream[]> {
  const streams: OpenStream[] = [];
  for (let i = 0; i < count; i++) {
    const client = send(`${listenUrl}${PATH}`, { body: STREAMED_CHAT });
    const call = await fake.call(fake.calls.length);
    call.response.write(tokenEvent(0));
    await client.receives(tokenEvent(0));
    streams.push({ client, call });
  }
  return streams;
}

/** Lets streams end; says of each whether its client has all of it. */
async function finish(streams: readonly OpenStream[]): Promise<boolean[]> {
  for (const { call } of streams) if (!call.isAborted) call.response.end(`${tokenEvent(1)}${DONE_EVENT}`);
  const answers = await Promise.all(streams.map(({ client }) => client.answer()));
  return answers.map(({ isWhole, text }) => isWhole && text === tokenEvent(0) + tokenEvent(1) + DONE_EVENT);
}

async function sendSome({ listenUrl }: WorkerBalancer, count: number, body: object = CHAT): Promise<number[]> {
  const statuses: number[] = [];
  for (let i = 0; i < count; i++) statuses.push((await exchange(`${listenUrl}${PATH}`, { body })).status);
  return statuses;
}

async function requestsInFlight(balancer: WorkerBalancer): Promise<number> {
  const { json } = await callAdmin(balancer, "GET", endpointPath("e1"));
  return (json as { work: { requests: number } }).work.requests;
}

function killOneWorker(balancer: WorkerBalancer): number {
  const [pid] = balancer.workers() as [number];
  process.kill(pid, "SIGKILL");
  return pid;
}

/** Waits until there are two again, the new one serving. */
async function replaced(balancer: WorkerBalancer): Promise<void> {
  await balancer.logged({ msg: "a worker serves again" });
}

function endpoints(...fakes: readonly FakeUpstream[]): object {
  return { endpoints: fakes.map(({ url }, i) => ({ id: `e${i + 1}`, url })) };
}

describe("workers", () => {
  it(
    "share the connections, and one that is killed takes no stream with it but its own",
    async () => {
      const e1 = await startFake(headThenHold);
      const balancer = await startWorkerBalancer(endpoints(e1));
      const streams = await openStreams(balancer, e1, 6);
      expect(await requestsInFlight(balancer)).toBe(6);
      const pid = killOneWorker(balancer);
      await until(() => streams.some(({ call }) => call.isAborted));
      await balancer.logged({ msg: "a worker died, another takes its place", pid, how: "SIGKILL" });
      await replaced(balancer);
      const lost = streams.filter(({ call }) => call.isAborted).length;
      expect(lost).toBeGreaterThan(0);
      expect(lost).toBeLessThan(6);
      expect(await requestsInFlight(balancer)).toBe(6 - lost);
      expect((await finish(streams)).filter((isWhole) => isWhole)).toHaveLength(6 - lost);
      expect(balancer.workers()).toHaveLength(2);
      expect(balancer.workers()).not.toContain(pid);
      e1.behave(ok());
      expect(await sendSome(balancer, 6)).toEqual(Array(6).fill(200));
    },
    SLOW,
  );

  it(
    "are one to whoever reads their metrics, and go on counting where one that died stopped",
    async () => {
      const e1 = await startFake(ok());
      const balancer = await startWorkerBalancer(endpoints(e1));
      await sendSome(balancer, 21);
      e1.behave(sse(3));
      await sendSome(balancer, 4, STREAMED_CHAT);
      e1.behave(headThenHold);
      const streams = await openStreams(balancer, e1, 3);
      const answered = { outcome: "ok", endpoint: "e1" };
      await until(async () => (await balancer.metric("evenkeel_requests_total", answered)) === 25);
      expect(await balancer.metric("evenkeel_requests_total")).toBe(25);
      expect(await balancer.metric("evenkeel_request_duration_seconds_count")).toBe(25);
      expect(await balancer.metric("evenkeel_request_duration_seconds_bucket", { le: "+Inf" })).toBe(25);
      expect(await balancer.metric("evenkeel_time_to_first_token_seconds_count")).toBe(4);
      expect(await balancer.metric("evenkeel_requests_in_flight")).toBe(3);
      expect(await balancer.metric("evenkeel_endpoint_running_requests")).toBe(3);
      const samples = await balancer.samples();
      for (const [name, value] of Object.entries({ evenkeel_endpoint_up: 1, evenkeel_workers: 2 })) {
        expect(samples.filter((sample) => sample.name === name)).toMatchObject([{ value }]);
      }
      killOneWorker(balancer);
      await replaced(balancer);
      expect(await balancer.metric("evenkeel_requests_total", answered)).toBe(25);
      expect(await balancer.metric("evenkeel_worker_deaths_total")).toBe(1);
      expect(await balancer.metric("evenkeel_requests_in_flight")).toBeLessThan(3);
      await finish(streams);
      e1.behave(ok());
      const before = await balancer.metric("evenkeel_requests_total", answered);
      await sendSome(balancer, 4);
      await until(async () => (await balancer.metric("evenkeel_requests_total", answered)) === before + 4);
    },
    SLOW,
  );

  it(
    "all have what operators change, those included that begin later",
    async () => {
      const [e1, e2] = [await startFake(ok()), await startFake(ok())];
      const balancer = await startWorkerBalancer(endpoints(e1));
      expect(await callAdmin(balancer, "PUT", endpointPath("e2"), { url: e2.url })).toMatchObject({ status: 201 });
      expect(await callAdmin(balancer, "POST", `${endpointPath("e1")}/drain`)).toMatchObject({
        status: 200,
        json: { id: "e1", isDraining: true },
      });
      const only = async (): Promise<void> => {
        const before = e1.calls.length;
        expect(await sendSome(balancer, 8)).toEqual(Array(8).fill(200));
        expect(e1.calls.length).toBe(before);
      };
      await only();
      for (let i = 0; i < 2; i++) {
        killOneWorker(balancer);
        await until(() => balancer.lines().filter(({ msg }) => msg === "a worker serves again").length === i + 1);
        await only();
      }
      e2.behave(headThenHold);
      const streams = await openStreams(balancer, e2, 4);
      expect(await callAdmin(balancer, "DELETE", endpointPath("e2"))).toMatchObject({
        status: 200,
        json: { removed: "e2", requests: 4 },
      });
      expect(await callAdmin(balancer, "PATCH", endpointPath("e9"), { weight: 1 })).toMatchObject({ status: 404 });
      expect(await finish(streams)).toEqual(Array(4).fill(true));
      await callAdmin(balancer, "POST", `${endpointPath("e1")}/undrain`);
      expect(await sendSome(balancer, 4)).toEqual(Array(4).fill(200));
    },
    SLOW,
  );

  it(
    "have none of a change that was refused since one of them did not answer, once it does",
    async () => {
      const e1 = await startFake(ok());
      const balancer = await startWorkerBalancer(endpoints(e1));
      const workers = balancer.workers();
      for (const pid of workers) process.kill(pid, "SIGSTOP");
      const drained = callAdmin(balancer, "POST", `${endpointPath("e1")}/drain`);
      expect(await drained).toMatchObject({ status: 503 });
      for (const pid of workers) process.kill(pid, "SIGCONT");
      await until(async () => (await fetch(`${balancer.admin}/livez`)).status === 200);
      expect(await callAdmin(balancer, "GET", endpointPath("e1"))).toMatchObject({ json: { isDraining: false } });
      expect(await sendSome(balancer, 4)).toEqual(Array(4).fill(200));
    },
    SLOW,
  );

  it(
    "take on a configuration all together, and one that begins later takes that one and not the file's",
    async () => {
      const [e1, e2] = [await startFake(ok()), await startFake(ok())];
      const balancer = await startWorkerBalancer(endpoints(e1));
      const write = (settings: object): void => writeFileSync(balancer.configFile, JSON.stringify(fileOf(settings)));
      const reload = async (): Promise<unknown> => (await callAdmin(balancer, "POST", "/admin/reload")).json;
      write(endpoints(e2));
      expect(await reload()).toMatchObject({ result: "applied", changed: ["pools"] });
      expect(await sendSome(balancer, 4)).toEqual(Array(4).fill(200));
      expect([e1.calls.length, e2.calls.length]).toEqual([0, 4]);
      write({ ...endpoints(e1), workers: 3 });
      expect(await reload()).toMatchObject({ settings: ["workers"] });
      killOneWorker(balancer);
      await replaced(balancer);
      expect(await sendSome(balancer, 4)).toEqual(Array(4).fill(200));
      expect([e1.calls.length, e2.calls.length]).toEqual([0, 8]);
      expect(await balancer.metric("evenkeel_config_reloads_total", { result: "applied" })).toBe(1);
      expect(await balancer.metric("evenkeel_config_last_reload_success")).toBe(0);
      write(endpoints(e1));
      balancer.primary.kill("SIGHUP");
      await balancer.logged({ msg: "configuration reloaded", trigger: "signal" });
      await until(async () => (await sendSome(balancer, 1)) && e1.calls.length > 0);
    },
    SLOW,
  );

  it(
    "hold the limits of a key together, over the death of one too",
    async () => {
      const e1 = await startFake(ok());
      const { sha256 } = keyHash("k", "secret");
      const keys = [{ id: "k", hash: `sha256:${sha256.toString("hex")}`, requestsPerMinute: 20 }];
      const balancer = await startWorkerBalancer({ ...endpoints(e1), keys });
      const headers = { "x-api-key": "secret" };
      const taken = async (count: number): Promise<number> => {
        let answered = 0;
        for (let i = 0; i < count; i++) {
          const { status } = await exchange(`${balancer.listenUrl}${PATH}`, { body: CHAT, headers });
          if (status === 200) answered++;
          else expect(status).toBe(429);
        }
        return answered;
      };
      const first = await taken(60);
      expect(first).toBeGreaterThanOrEqual(20);
      // Two that knew nothing of each other would take 40.
      expect(first).toBeLessThan(32);
      killOneWorker(balancer);
      await replaced(balancer);
      // A full allowance of its own would be 20.
      expect(await taken(40)).toBeLessThan(15);
    },
    SLOW,
  );

  it(
    "record into one file, each request a whole line",
    async () => {
      const e1 = await startFake(ok());
      const folder = mkdtempSync(join(tmpdir(), "evenkeel-recording-"));
      onTestFinished(() => rmSync(folder, { recursive: true }));
      const file = join(folder, "requests.jsonl");
      const balancer = await startWorkerBalancer({ ...endpoints(e1), recording: { file } });
      const url = `${balancer.listenUrl}${PATH}`;
      const long = { ...CHAT, messages: [{ role: "user", content: "x".repeat(100_000) }] };
      const headers = { "x-session-id": "one" };
      await Promise.all(Array.from({ length: 40 }, () => exchange(url, { body: long, headers })));
      balancer.primary.kill("SIGTERM");
      expect(await balancer.ended()).toEqual({ code: 0, signal: null });
      const [, ...lines] = readFileSync(file, "utf8").trimEnd().split("\n");
      const requests = lines.map((line) => JSON.parse(line) as { readonly session: string; readonly at: number });
      expect(requests).toHaveLength(40);
      expect(new Set(requests.map(({ session }) => session)).size).toBe(1);
      expect(requests.every(({ at }) => at >= 0)).toBe(true);
    },
    SLOW,
  );
});
