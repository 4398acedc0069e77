import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { type Footprint, type LogLine, type OpenWork, ServedBalancer } from "../support/served-balancer.ts";
import type { Question } from "../support/text-call.ts";
import { VICTIM_MODEL, type VictimEngine, victimEngines } from "../support/victim-engines.ts";
import { ClientCrowd, type Crowd, type CrowdRecord } from "./clients.ts";
import { type FaultKind, planFaults } from "./faults.ts";
import { LLAMA_FLEET_MODEL, llamaEngines } from "./llama-fleet.ts";
import { builtInQuestions, llamaQuestions } from "./questions.ts";
import { type Struck, sleep, strikeAll } from "./strike.ts";

/** What a run is made of. */
export interface ChaosPlan {
  readonly engines: "built-in" | "llamacpp";
  readonly engineCount: number;
  readonly clients: number;
  /** Of traffic without faults, before anything is measured. */
  readonly warmUpMs: number;
  /** Of traffic with faults. */
  readonly durationMs: number;
  readonly faults: readonly FaultKind[];
  readonly seed: number;
  /** Folder in which the run has one of its own for its files. */
  readonly scratch: string;
  readonly progress: (text: string) => void;
}

/** What happened. */
export interface ChaosRecord {
  readonly calm: CrowdRecord;
  readonly storm: CrowdRecord;
  readonly struck: readonly Struck[];
  /** What the balancer counted during the storm, by outcome. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** After everything had ended. */
  readonly open: OpenWork;
  readonly before: Footprint;
  readonly after: Footprint;
  readonly log: readonly LogLine[];
  /** The balancer's process is no more: the end of what it wrote. */
  readonly lastWords: string | undefined;
}

/** Shorter than usual, so that every one of them strikes in a short run; a long freeze outlasts them all. */
const TIMEOUTS = { connect: "1s", firstByte: "4s", idle: "3s" };

const CONFIG = {
  timeouts: TIMEOUTS,
  // An engine that stands still is dead to whoever waits for it, and nothing but its silence tells.
  failover: { slowResends: 1 },
  // Engines that come back carry their full share before they are struck again.
  health: { interval: "500ms", timeout: "1s", unhealthyAfter: 3, healthyAfter: 1, slowStart: "2s" },
  log: { level: "warn", format: "json" },
};

/** Sends clients through a balancer to engines that are struck by one fault after the other. */
export async function runChaos(plan: ChaosPlan): Promise<ChaosRecord> {
  const directory = await mkdtemp(join(plan.scratch, "run-"));
  const engines = await engineFleet(plan, directory);
  let balancer: ServedBalancer | undefined;
  try {
    await Promise.all(engines.map((engine) => engine.start()));
    const endpoints = new EndpointFile(engines);
    balancer = await ServedBalancer.start(endpoints.config, directory);
    return await storm(plan, balancer, engines, endpoints);
  } finally {
    await Promise.all(engines.map((engine) => engine.stop()));
    await balancer?.stop();
  }
}

async function storm(
  plan: ChaosPlan,
  balancer: ServedBalancer,
  engines: readonly VictimEngine[],
  endpoints: EndpointFile,
): Promise<ChaosRecord> {
  const { durationMs, warmUpMs, progress } = plan;
  const crowd = await crowdOf(plan, balancer.origin, engines);
  progress(`${warmUpMs / 1000} s without faults`);
  const calmCrowd = new ClientCrowd(crowd, "calm");
  await sleep(warmUpMs);
  const calm = await calmCrowd.stop();
  await quiet(balancer, undefined);
  const before = await balancer.footprint();
  const counted = await balancer.outcomes();

  const faults = planFaults({ kinds: plan.faults, engines: engines.length, durationMs, seed: plan.seed });
  progress(`${durationMs / 1000} s with ${faults.length} faults`);
  const stormCrowd = new ClientCrowd(crowd, "storm");
  const change = (id: string, state: EndpointState): Promise<void> => balancer.reconfigure(endpoints.with(id, state));
  const [struck] = await Promise.all([strikeAll(faults, { engines, change }), sleep(durationMs)]);
  const record = await stormCrowd.stop();
  progress("waiting until everything has ended");
  await quiet(balancer, before.sockets);
  const { lastWords } = balancer;
  if (lastWords !== undefined) throw new Error(`the balancer ended: ${lastWords}`);
  const outcomes = difference(await balancer.outcomes(), counted);
  const open = await balancer.openWork();
  return {
    calm,
    storm: record,
    struck,
    outcomes,
    open,
    before,
    after: await balancer.footprint(),
    log: balancer.log(),
    lastWords,
  };
}

/** Longer than any time-out of the balancer and than connections to engines are kept. */
const QUIET_LIMIT_MS = 20_000;
const QUIET_MS = 4000;

/** Until nothing is open, or it is clear that something stays. @param sockets As few as there are to be. */
async function quiet(balancer: ServedBalancer, sockets: number | undefined): Promise<void> {
  const untilMs = performance.now() + QUIET_LIMIT_MS;
  // Connections to engines that are kept for reuse go after some seconds.
  await sleep(QUIET_MS);
  while (performance.now() < untilMs) {
    const { inFlight, heldRequests, leases } = await balancer.openWork();
    const isIdle = inFlight === 0 && heldRequests === 0 && Object.keys(leases).length === 0;
    if (isIdle && (sockets === undefined || balancer.sockets() <= sockets)) return;
    await sleep(200);
  }
}

function engineFleet({ engines, engineCount }: ChaosPlan, directory: string): Promise<VictimEngine[]> {
  return engines === "built-in" ? victimEngines(engineCount, SPEED, directory) : llamaEngines(engineCount);
}

async function crowdOf(
  { engines: kind, clients, seed }: ChaosPlan,
  origin: string,
  engines: readonly VictimEngine[],
): Promise<Crowd> {
  const common = { origin, clients, seed, thinkMs: THINK_MS };
  if (kind === "llamacpp") {
    const questions: readonly Question[] = llamaQuestions(seed);
    return { ...common, model: LLAMA_FLEET_MODEL, questions, longQuestions: questions };
  }
  const asked = await builtInQuestions(engines[0]?.url ?? "", VICTIM_MODEL, seed);
  return { ...common, model: VICTIM_MODEL, ...asked };
}

const THINK_MS = 600;
/** Some 60 ms a step: slow enough for 200 streams at a time on two cores. */
const SPEED = 0.2;

type EndpointState = "absent" | "drained" | "present";

/** The configuration as the file has it: endpoints come and go. */
class EndpointFile {
  readonly #urls: ReadonlyMap<string, string>;
  readonly #states: Map<string, EndpointState>;

  constructor(engines: readonly VictimEngine[]) {
    this.#urls = new Map(engines.map(({ id, url }) => [id, url]));
    this.#states = new Map(engines.map(({ id }) => [id, "present"]));
  }

  get config(): object {
    const present = [...this.#urls].filter(([id]) => this.#states.get(id) !== "absent");
    const weightOf = (id: string): number => (this.#states.get(id) === "drained" ? 0 : 1);
    return { ...CONFIG, endpoints: present.map(([id, url]) => ({ id, url, weight: weightOf(id) })) };
  }

  /** The same with one endpoint changed. */
  with(id: string, state: EndpointState): object {
    this.#states.set(id, state);
    return this.config;
  }
}

function difference(
  after: Readonly<Record<string, number>>,
  before: Readonly<Record<string, number>>,
): Record<string, number> {
  const counts = Object.entries(after).map(([name, count]) => [name, count - (before[name] ?? 0)] as const);
  return Object.fromEntries(counts.filter(([, count]) => count !== 0));
}
