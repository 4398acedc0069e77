import { parseDurationMs } from "./duration.ts";
import { EngineIds, type EngineSpec, type FleetSpec, parseEngines } from "./fleet-spec.ts";

/** A change of the fleet while it serves. */
export type FleetEvent =
  /** The engine dies with everything it was doing. */
  | { readonly kind: "fail"; readonly atMs: number; readonly id: string }
  /** A failed engine is back, with an empty cache. */
  | { readonly kind: "recover"; readonly atMs: number; readonly id: string }
  /** New engines, cold and empty. */
  | { readonly kind: "join"; readonly atMs: number; readonly engines: readonly EngineSpec[] };

/**
 * Reads changes of a fleet, in any order, with commas or semicolons between them:
 * `fail h100-2 at 300s, recover h100-2 at 6m, join 2*llama8b-h100 at 10m`.
 * @throws RangeError when one cannot be read or cannot happen; the message says what could.
 */
export function parseFleetEvents(text: string, fleet: FleetSpec): FleetEvent[] {
  const ids = new EngineIds();
  for (const { profile } of fleet.engines) ids.next(profile);
  const events = text
    .split(/[,;]/)
    .filter((part) => part.trim() !== "")
    .map((part) => parseEvent(part.trim(), ids))
    .toSorted((a, b) => a.atMs - b.atMs);
  checkSequence(events, fleet);
  return events;
}

const EVENT = /^(fail|recover|join)\s+(\S+)\s+at\s+(\S+)$/;

const EXPECTED =
  'expected "fail ENDPOINT at TIME", "recover ENDPOINT at TIME" or "join COUNT*PROFILE at TIME", with a TIME such as 300s or 5m';

function parseEvent(text: string, ids: EngineIds): FleetEvent {
  const [, kind, what = "", time = ""] = EVENT.exec(text) ?? [];
  const atMs = parseDurationMs(time);
  if (kind === undefined || atMs === undefined) throw new RangeError(`"${text}" is no event; ${EXPECTED}`);
  if (kind === "join") return { kind, atMs, engines: parseEngines(what, ids) };
  return { kind: kind as "fail" | "recover", atMs, id: what };
}

/** What fails must be there and well, what recovers must have failed. */
function checkSequence(events: readonly FleetEvent[], fleet: FleetSpec): void {
  const isUp = new Map(fleet.engines.map(({ id }) => [id, true]));
  for (const event of events) {
    if (event.kind === "join") {
      for (const { id } of event.engines) isUp.set(id, true);
      continue;
    }
    const { kind, id, atMs } = event;
    const wasUp = isUp.get(id);
    if (wasUp === undefined) {
      throw new RangeError(`there is no endpoint "${id}" at ${atMs / 1000}s; there are ${[...isUp.keys()].join(", ")}`);
    }
    if (wasUp === (kind === "recover")) {
      throw new RangeError(`"${id}" cannot ${kind} at ${atMs / 1000}s: it ${wasUp ? "is well" : "has failed already"}`);
    }
    isUp.set(id, kind === "recover");
  }
}
