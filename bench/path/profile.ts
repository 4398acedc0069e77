import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Contender } from "./contender.ts";
import { type CpuProfile, type SelfTime, selfTimes } from "./cpu-profile.ts";
import { type Delivered, runStreams } from "./load.ts";
import { evenkeel } from "./peers/evenkeel.ts";
import type { Bench } from "./run.ts";

/** Where the time of one phase goes. */
export interface PhaseProfile {
  readonly phase: string;
  readonly selfTimes: readonly SelfTime[];
  /** Answers or events meanwhile. */
  readonly units: number;
  /** The profile itself, for tools that draw it. */
  readonly file: string;
}

const REQUEST_SECONDS = 8;

/** The program before it is bundled: the same code, in files that say what it is. */
const UNBUNDLED = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

/** Runs evenkeel once per phase under V8's profiler; start and warm-up are left out of the tables. */
export async function profilePath(bench: Bench): Promise<PhaseProfile[]> {
  await evenkeel.install();
  return [
    await profilePhase(bench, "requests", (port) => bench.requests.run(port, REQUEST_SECONDS)),
    await profilePhase(bench, "events", runStreams),
  ];
}

async function profilePhase(
  bench: Bench,
  phase: string,
  load: (port: number) => Promise<Delivered>,
): Promise<PhaseProfile> {
  bench.progress(`profiling ${phase}`);
  const directory = join(bench.scratch, `profile-${phase}`);
  await mkdir(directory, { recursive: true });
  const contender = await Contender.start(
    evenkeel,
    bench.origins.ports,
    bench.scratch,
    ({ file, args: [, ...args] }) => ({
      file,
      args: ["--cpu-prof", `--cpu-prof-dir=${directory}`, "--cpu-prof-interval=200", UNBUNDLED, ...args],
    }),
  );
  const measured = await measureWarm(contender, load).finally(() => contender.stop());
  const [name] = (await readdir(directory)).filter((entry) => entry.endsWith(".cpuprofile"));
  if (name === undefined) throw new Error("evenkeel left no profile: it was killed before it could end");
  const file = join(directory, name);
  const profile = JSON.parse(await readFile(file, "utf8")) as CpuProfile;
  return { phase, selfTimes: selfTimes(profile, measured.fromUs, measured.toUs), units: measured.units, file };
}

/** Puts the load on twice; the second time counts. */
async function measureWarm(
  contender: Contender,
  load: (port: number) => Promise<Delivered>,
): Promise<{ readonly fromUs: number; readonly toUs: number; readonly units: number }> {
  await contender.measure(load);
  const fromUs = nowUs();
  const { units } = await contender.measure(load);
  return { fromUs, toUs: nowUs(), units };
}

function nowUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}
