import { ENGINE_PROFILES, type EngineProfile, engineProfile } from "./engine-profiles.ts";

/** One engine of a simulated fleet. */
export interface EngineSpec {
  /** Unique in its fleet: the GPU and a number, "h100-2". */
  readonly id: string;
  readonly profile: EngineProfile;
  /** 1: the profile's pace; 0.5: half of it. */
  readonly speed: number;
  /** KV cache size that the balancer is configured with; absent: it knows what the engine reports, which is right. */
  readonly configuredKvTokens?: number;
}

/** The engines a simulation starts with. */
export interface FleetSpec {
  /** As it was written: "4*llama8b-h100,4*llama8b-a100". */
  readonly text: string;
  readonly engines: readonly EngineSpec[];
}

/** Gives ids: "h100-1", "h100-2", "a100-1". */
export class EngineIds {
  readonly #given = new Map<string, number>();

  next({ name }: EngineProfile): string {
    const gpu = name.slice(name.lastIndexOf("-") + 1);
    const number = (this.#given.get(gpu) ?? 0) + 1;
    this.#given.set(gpu, number);
    return `${gpu}-${number}`;
  }
}

/**
 * Reads a fleet: groups `COUNT*PROFILE@SPEED` with commas between them; a count of 1 and a speed of 1 may be left out.
 * @throws RangeError when it cannot be read; the message says what could.
 */
export function parseFleet(text: string): FleetSpec {
  return { text: text.replaceAll(/\s/g, ""), engines: parseEngines(text, new EngineIds()) };
}

/** The engines that `text` stands for. @throws RangeError when it cannot be read. */
export function parseEngines(text: string, ids: EngineIds): EngineSpec[] {
  return text.split(",").flatMap((group) => parseGroup(group.trim(), ids));
}

/** `count` engines of the one kind that `fleet` has. @throws RangeError when it is of several kinds. */
export function resizeFleet(fleet: FleetSpec, count: number): FleetSpec {
  const [first] = fleet.engines;
  if (first === undefined || fleet.engines.some(({ profile, speed }) => !isOfKind(first, profile, speed))) {
    throw new RangeError(`the number of endpoints can be varied in a fleet of one kind only, not in "${fleet.text}"`);
  }
  const { profile, speed } = first;
  return parseFleet(`${count}*${profile.name}${speed === 1 ? "" : `@${speed}`}`);
}

const GROUP = /^(?:(\d+)\s*\*\s*)?([a-z][\w-]*)(?:@(\d+(?:\.\d+)?))?$/;

/** Larger than any fleet one balancer is meant for; a slip of the finger is found before it is simulated. */
const MAX_ENGINES = 1_000;

function parseGroup(group: string, ids: EngineIds): EngineSpec[] {
  const [, count = "1", name, speed = "1"] = GROUP.exec(group) ?? [];
  if (name === undefined) {
    throw new RangeError(
      `"${group}" is no group of engines; expected COUNT*PROFILE@SPEED, such as 4*llama8b-h100 or 2*llama8b-a100@0.5`,
    );
  }
  const profile = engineProfile(name);
  if (profile === undefined) {
    const known = ENGINE_PROFILES.map((each) => each.name).join(", ");
    throw new RangeError(`unknown engine profile "${name}"; known profiles: ${known}`);
  }
  if (Number(count) < 1 || Number(count) > MAX_ENGINES) {
    throw new RangeError(`"${group}": expected 1 to ${MAX_ENGINES} engines, not ${count}`);
  }
  if (Number(speed) === 0) throw new RangeError(`"${group}": a speed must be above 0`);
  return Array.from({ length: Number(count) }, () => ({ id: ids.next(profile), profile, speed: Number(speed) }));
}

function isOfKind(first: EngineSpec, profile: EngineProfile, speed: number): boolean {
  return first.profile === profile && first.speed === speed;
}
