import { type ChildProcess, fork } from "node:child_process";
import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { Agent, createServer, get } from "node:http";
import { fileURLToPath } from "node:url";
import { median } from "./support/statistics.ts";
import { figure, textTable } from "./support/table.ts";

/**
 * How connections get to worker processes: dealt out by the primary in turn, or accepted by whichever worker comes first
 * from a socket that all share. Prints what the primary spends on each connection, and how evenly clients that keep
 * theirs are spread; docs/workers.md says what follows. This file is the primary, its workers
 * and their client.
 */
const WORKERS = 2;
const ROUNDS = 7;
const KEPT = 32;
const SHORT = 3_000;

const POLICIES = { "dealt in turn": cluster.SCHED_RR, "shared socket": cluster.SCHED_NONE } as const;

interface Round {
  /** Kept connections of the worker that has most of them. */
  readonly most: number;
  /** CPU of the primary per connection that carried one request, in microseconds. */
  readonly primaryUs: number;
}

/** In a process of its own: the policy of a process is settled with its first worker. */
async function measure(policy: number): Promise<readonly Round[]> {
  cluster.schedulingPolicy = policy;
  cluster.setupPrimary({ exec: fileURLToPath(import.meta.url), args: ["worker"], serialization: "advanced" });
  const workers = Array.from({ length: WORKERS }, () => cluster.fork());
  const [[{ port }]] = (await Promise.all(workers.map((worker) => once(worker, "listening")))) as [[{ port: number }]];
  const client = fork(fileURLToPath(import.meta.url), ["client", String(port)]);
  const rounds: Round[] = [];
  // The first round warms up.
  for (let round = 0; round <= ROUNDS; round++) {
    const kept = await during(workers, () => send(client, "kept"));
    const before = process.cpuUsage();
    await send(client, "short");
    const { user, system } = process.cpuUsage(before);
    if (round > 0) rounds.push({ most: Math.max(...kept), primaryUs: (user + system) / SHORT });
  }
  client.disconnect();
  for (const worker of workers) worker.kill();
  await Promise.all(workers.map((worker) => once(worker, "exit")));
  return rounds;
}

/** Connections that each worker took meanwhile. */
async function during(workers: readonly Worker[], work: () => Promise<void>): Promise<number[]> {
  const before = await Promise.all(workers.map(connectionsOf));
  await work();
  const after = await Promise.all(workers.map(connectionsOf));
  return after.map((count, i) => count - (before[i] ?? 0));
}

async function connectionsOf(worker: Worker): Promise<number> {
  worker.send("count");
  const [count] = await once(worker, "message");
  return count as number;
}

async function send(client: ChildProcess, phase: "kept" | "short"): Promise<void> {
  client.send(phase);
  await once(client, "message");
}

function serve(): void {
  let connections = 0;
  const server = createServer((_request, response) => void response.end("ok"));
  server.on("connection", () => connections++).listen(0, "127.0.0.1");
  process.on("message", () => process.send?.(connections));
}

function beClient(port: number): void {
  const ask = (agent: Agent | false): Promise<void> =>
    new Promise((resolve, reject) => {
      get({ port, host: "127.0.0.1", agent }, (response) => response.resume().on("end", resolve)).on("error", reject);
    });
  const lanes = (rounds: number, agent: Agent | false): Promise<unknown> =>
    Promise.all(
      Array.from({ length: KEPT }, async () => {
        for (let round = 0; round < rounds; round++) await ask(agent);
      }),
    );
  process.on("message", async (phase) => {
    const agent = new Agent({ keepAlive: true, maxSockets: KEPT });
    await (phase === "kept" ? lanes(20, agent) : lanes(Math.ceil(SHORT / KEPT), false));
    agent.destroy();
    process.send?.("done");
  });
}

async function main(): Promise<void> {
  const rows: string[][] = [["connections are", "primary us each", `most of ${KEPT} kept, per round`]];
  for (const [name, policy] of Object.entries(POLICIES)) {
    const measuring = fork(fileURLToPath(import.meta.url), ["measure", String(policy)]);
    const [rounds] = (await once(measuring, "message")) as [readonly Round[]];
    const most = rounds.map((round) => round.most).join(" ");
    rows.push([name, figure(median(rounds.map(({ primaryUs }) => primaryUs)), 1), most]);
  }
  process.stdout.write(`${textTable(rows)}\n`);
}

const [role, value] = process.argv.slice(2);
if (role === "worker") serve();
else if (role === "client") beClient(Number(value));
else if (role === "measure") {
  const rounds = await measure(Number(value));
  process.send?.(rounds, () => process.disconnect());
} else await main();
