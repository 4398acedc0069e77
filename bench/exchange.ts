/**
 * What it costs that worker processes know of each other's work: of the core of one, and of the primary that passes on.
 * Run with `npx tsx bench/exchange.ts`; `--json` prints one JSON object instead of the tables.
 */

import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Balancer, endpoint, type Lease, requestProfile, type SharedWork, seededRandom } from "../src/core/index.ts";
import {
  type ExchangeMessage,
  type ExchangePort,
  ExchangeRelay,
  ipcPort,
  ProcessExchange,
} from "../src/runtime/index.ts";
import { figure, textTable } from "./support/table.ts";

const INTERVAL_MS = 10;
/** Each worker has as many others. */
const OTHERS = 3;
/** The best of some rounds: what else the machine does can only slow a round down. */
const ROUNDS = 8;
const MESSAGES_PER_ROUND = 200;
/** A prompt of 2 kB. */
const BLOCKS = 8;

/** Endpoints, and requests that come and end between two messages; none: every message tells of all endpoints. */
const CASES: readonly (readonly [number, number])[] = [
  ...[8, 100, 200, 1000].map((endpoints) => [endpoints, 10] as const),
  ...[8, 100, 200, 1000].map((endpoints) => [endpoints, 100] as const),
  ...[200, 1000].map((endpoints) => [endpoints, 0] as const),
];

/** Time of one message in us, part by part. */
interface Cost {
  readonly endpoints: number;
  readonly requests: number;
  readonly bytes: number;
  /** What the requests themselves take, decided, begun and ended: what the others are compared to. */
  readonly traffic: number;
  readonly share: number;
  readonly write: number;
  readonly read: number;
  readonly adopt: number;
}

/** A balancer in steady traffic. Requests go round in turn: this is not about deciding. */
class Traffic {
  readonly balancer: Balancer;
  readonly #random = seededRandom(1);
  readonly #leases: Lease[] = [];
  nowMs = 0;

  constructor(endpoints: number, inFlight: number) {
    const ids = Array.from({ length: endpoints }, (_, i) => `endpoint-${i}`);
    const all = ids.map((id) => endpoint({ id, kvCapacityTokens: 500_000 }));
    this.balancer = new Balancer({ endpoints: all, policy: "round_robin" });
    this.balancer.shareChanges(0);
    for (let i = 0; i < inFlight; i++) this.#send();
  }

  /** Those that have run longest end, and as many come. */
  move(requests: number): void {
    this.nowMs += INTERVAL_MS;
    for (const lease of this.#leases.splice(0, requests)) {
      this.balancer.progress(lease, 100, this.nowMs);
      this.balancer.finish(lease, { kind: "completed" }, this.nowMs);
      this.#send();
    }
  }

  #send(): void {
    const first = Math.floor(this.#random.next() * 2 ** 40);
    const prefix = { hashes: Array.from({ length: BLOCKS }, (_, i) => first + i), tokensPerBlock: 64 };
    const request = requestProfile({ promptTokens: 500, expectedOutputTokens: 100, prefix });
    const decision = this.balancer.decide(request, this.nowMs);
    if (decision.kind !== "routed") throw new Error(decision.kind);
    this.balancer.firstToken(decision.lease, this.nowMs);
    this.#leases.push(decision.lease);
  }
}

/** A port that keeps the last message, and one that is told it. */
class LoopPort implements ExchangePort {
  last: unknown;
  hear: (message: unknown) => void = () => undefined;

  send(message: unknown, sent: () => void): void {
    this.last = message;
    sent();
  }

  onMessage(listener: (message: unknown) => void): void {
    this.hear = listener;
  }

  close(): void {
    this.last = undefined;
  }
}

function costOf(endpoints: number, requests: number): Cost {
  const traffic = new Traffic(endpoints, Math.max(endpoints, requests));
  const receiver = new Traffic(endpoints, 0).balancer;
  const port = new LoopPort();
  const exchange = new ProcessExchange("worker-1", port);
  let heard: ExchangeMessage | undefined;
  exchange.subscribe({ received: (message) => (heard = message), left: () => undefined });
  const least = { traffic: Infinity, share: Infinity, write: Infinity, read: Infinity, adopt: Infinity };
  let bytes = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const sums = { traffic: 0, share: 0, write: 0, read: 0, adopt: 0 };
    for (let i = 0; i < MESSAGES_PER_ROUND; i++) {
      sums.traffic += timed(() => traffic.move(requests));
      let work: SharedWork | undefined;
      sums.share += timed(() => (work = requests === 0 ? all(traffic) : traffic.balancer.shareChanges(traffic.nowMs)));
      if (work === undefined) throw new Error("nothing is told");
      const message = messageOf(work, i);
      sums.write += timed(() => exchange.publish(message));
      bytes = (port.last as { bytes: Uint8Array }).bytes.length;
      sums.read += timed(() => port.hear(port.last));
      sums.adopt += timed(() => receiver.adopt("other", heard?.pools.get("pool"), traffic.nowMs));
    }
    for (const part of ["traffic", "share", "write", "read", "adopt"] as const) {
      least[part] = Math.min(least[part], sums[part] / MESSAGES_PER_ROUND);
    }
  }
  return { endpoints, requests, bytes, ...least };
}

function all({ balancer, nowMs }: Traffic): SharedWork {
  return balancer.share(nowMs);
}

function messageOf(work: SharedWork, sequence: number): ExchangeMessage {
  const { isWhole } = work;
  return { from: "worker-1", life: 1, sequence, isWhole, pools: new Map([["pool", work]]), keys: new Map() };
}

/** In us. */
function timed(run: () => void): number {
  const startMs = performance.now();
  run();
  return 1000 * (performance.now() - startMs);
}

/** Of one message to all others, in us of processor time. */
interface RelayCost {
  readonly bytes: number;
  readonly primary: number;
}

const RELAYED = 4000;

/** A worker that says so much and one for each of the others that listens, and the primary between them: this process. */
async function relayCostOf(bytes: number): Promise<RelayCost> {
  const relay = new ExchangeRelay();
  const workers = Array.from({ length: 1 + OTHERS }, (_, i) => {
    const role = i === 0 ? ["says", String(bytes), String(RELAYED)] : ["listens"];
    const child = fork(fileURLToPath(import.meta.url), role, { serialization: "advanced" });
    relay.attach(`worker-${i}`, ipcPort(child));
    return child;
  });
  const [speaker] = workers;
  await new Promise((resolve) => speaker?.once("message", resolve));
  const before = process.cpuUsage();
  await new Promise((resolve) => speaker?.once("exit", resolve));
  const { user, system } = process.cpuUsage(before);
  for (const worker of workers) worker.kill();
  return { bytes, primary: (user + system) / RELAYED };
}

/** The worker that says something, as fast as the channel takes it. */
function say(bytes: number, count: number): void {
  const message = { exchange: "message", bytes: new Uint8Array(bytes) };
  const next = (left: number): void => {
    if (left === 0) process.disconnect();
    else process.send?.(message, undefined, undefined, () => next(left - 1));
  };
  next(count);
}

/** Share of one core: a message told and as many heard as there are others, every `INTERVAL_MS`. */
function loadOf({ share, write, read, adopt }: Cost): number {
  return (share + write + OTHERS * (read + adopt)) / (1000 * INTERVAL_MS);
}

async function main(): Promise<void> {
  const costs = CASES.map(([endpoints, requests]) => costOf(endpoints, requests));
  const relays: RelayCost[] = [];
  for (const bytes of [4096, 16_384, 65_536]) relays.push(await relayCostOf(bytes));
  if (process.argv.includes("--json")) {
    process.stdout.write(`${JSON.stringify({ intervalMs: INTERVAL_MS, others: OTHERS, costs, relays })}\n`);
    return;
  }
  const us = (value: number): string => figure(value, 1);
  const rows = costs.map((cost) => {
    const { endpoints, requests, bytes, traffic, share, write, read, adopt } = cost;
    const perRequest = requests === 0 ? undefined : (share + write + OTHERS * (read + adopt)) / requests;
    return [
      `${endpoints}`,
      requests === 0 ? "all" : `${requests}`,
      figure(bytes / 1024, 1),
      ...[share, write, read, adopt].map(us),
      figure(perRequest, 1),
      figure(perRequest && (perRequest * requests) / traffic, 2),
      requests === 0 ? "-" : `${figure(100 * loadOf(cost), 1)} %`,
    ];
  });
  const head = [
    "Endpoints",
    "requests",
    "kB",
    "share",
    "write",
    "read",
    "adopt",
    "per request",
    "x its own",
    "of a core",
  ];
  const relayRows = relays.map(({ bytes, primary }) => [figure(bytes / 1024, 0), us(primary)]);
  process.stdout.write(
    `us per message; per request and of a core: ${OTHERS + 1} workers that tell each other every ${INTERVAL_MS} ms\n` +
      `x its own: against what a request takes where it is decided, begun and ended (round_robin)\n\n` +
      `${textTable([head, ...rows])}\n\n` +
      `us of the primary to pass one message on to ${OTHERS} others\n\n${textTable([["kB", "primary"], ...relayRows])}\n`,
  );
}

const [role, bytes, count] = process.argv.slice(2);
if (role === "says") say(Number(bytes), Number(count));
else if (role === "listens") process.on("message", () => undefined);
else await main();
