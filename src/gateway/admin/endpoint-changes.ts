import { type EndpointConfig, readEndpoint, type ServedPool } from "../../runtime/index.ts";
import type { GatewayParts } from "../gateway-parts.ts";
import { type AdminAnswer, invalid, json, refusal } from "./admin-answer.ts";
import { endpointState } from "./pool-state.ts";

/** The endpoint that a path names. */
interface Place {
  readonly pool: ServedPool;
  readonly id: string;
}

/** An endpoint is a few lines, its certificates are named by their files. */
export const MAX_ENDPOINT_BYTES: number = 64 * 1024;

const WEIGHT = 'expected { "weight": number of at least 0 }';

/** `GET /admin/pools/{pool}/endpoints/{id}`. */
export function showEndpoint(parts: GatewayParts, names: readonly string[]): AdminAnswer {
  const place = existing(parts, names);
  return "status" in place ? place : state(parts, place);
}

/** `PUT …`: adds the endpoint, or takes the place of the one with its id, work and everything learned kept. */
export function putEndpoint(parts: GatewayParts, names: readonly string[], value: unknown): AdminAnswer {
  const place = placeOf(parts, names);
  if ("status" in place) return place;
  const { pool, id } = place;
  const written = typeof value === "object" && value !== null && !Array.isArray(value) ? { id, ...value } : value;
  const checked = readEndpoint(written);
  if (!checked.ok) return invalid("the endpoint cannot be used", checked.problems);
  const conflict = conflictOf(pool, id, checked.value);
  if (conflict !== undefined) return refusal(409, conflict);
  const isNew = pool.find(id) === undefined;
  pool.putEndpoint(checked.value);
  tell(parts, place, isNew ? "added" : "replaced");
  return state(parts, place, isNew ? 201 : 200);
}

/** `PATCH …` with a weight. */
export function patchEndpoint(parts: GatewayParts, names: readonly string[], value: unknown): AdminAnswer {
  const place = existing(parts, names);
  if ("status" in place) return place;
  const weight = weightOf(value, place);
  if (typeof weight !== "number") return weight;
  place.pool.weighEndpoint(place.id, weight);
  tell(parts, place, "weighed");
  return state(parts, place);
}

/** `DELETE …`: nothing new goes there; what runs there finishes. */
export function deleteEndpoint(parts: GatewayParts, names: readonly string[]): AdminAnswer {
  const place = existing(parts, names);
  if ("status" in place) return place;
  place.pool.removeEndpoint(place.id);
  tell(parts, place, "removed");
  return removedEndpoint(parts, names);
}

/** An endpoint that was removed, and how many requests still run there. */
export function removedEndpoint(parts: GatewayParts, names: readonly string[]): AdminAnswer {
  const place = placeOf(parts, names);
  if ("status" in place) return place;
  const left = place.pool.leaving.find(({ monitor }) => monitor.endpoint.id === place.id);
  const removed: RemovedEndpoint = { removed: place.id, pool: place.pool.name, requests: left?.account.requests ?? 0 };
  return json(200, removed);
}

/** What a removal is answered. */
export interface RemovedEndpoint {
  readonly removed: string;
  readonly pool: string;
  readonly requests: number;
}

/** `POST …/drain` and `POST …/undrain`. */
export function drainEndpoint(parts: GatewayParts, names: readonly string[], isDraining: boolean): AdminAnswer {
  const place = existing(parts, names);
  if ("status" in place) return place;
  place.pool.drainEndpoint(place.id, isDraining);
  tell(parts, place, isDraining ? "drained" : "undrained");
  return state(parts, place);
}

function tell({ runtime }: GatewayParts, { pool, id }: Place, change: string): void {
  runtime.log.info({ pool: pool.name, endpoint: id, change }, "endpoint changed by the admin API");
}

function state({ runtime, upstreams }: GatewayParts, { pool, id }: Place, status = 200): AdminAnswer {
  const endpoint = endpointState(pool, id, upstreams, runtime.clock.nowMs());
  return endpoint === undefined ? refusal(404, `no endpoint ${id} in pool ${pool.name}`) : json(status, endpoint);
}

function placeOf({ runtime }: GatewayParts, [name = "", id = ""]: readonly string[]): Place | AdminAnswer {
  const pool = runtime.pools.find((each) => each.name === name);
  if (pool !== undefined) return { pool, id };
  return refusal(404, `no pool ${name}`, { pools: runtime.pools.map((each) => each.name) });
}

function existing(parts: GatewayParts, names: readonly string[]): Place | AdminAnswer {
  const place = placeOf(parts, names);
  if ("status" in place) return place;
  const { pool, id } = place;
  const ids = pool.balancer.members.map(({ endpoint }) => endpoint.id);
  return ids.includes(id) ? place : refusal(404, `no endpoint ${id} in pool ${pool.name}`, { endpoints: ids });
}

/** What keeps the endpoint out of its pool; undefined: nothing. */
function conflictOf(
  pool: ServedPool,
  id: string,
  { id: writtenId, url, models = [] }: EndpointConfig,
): string | undefined {
  if (writtenId !== id) return `id: found "${writtenId}", expected "${id}" as in the path, or nothing`;
  const other = pool.balancer.members.find(({ endpoint }) => endpoint.url === url && endpoint.id !== id);
  if (other !== undefined) return `url: expected one that the pool does not have yet (${other.endpoint.id} has it)`;
  const served = pool.config.models;
  const strange = served === undefined ? undefined : models.find((model) => !served.includes(model));
  return strange === undefined ? undefined : `models: found ${strange}, expected models of the pool`;
}

/** Checked as the weight of an endpoint in the file is. */
function weightOf(value: unknown, { pool, id }: Place): number | AdminAnswer {
  if (typeof value !== "object" || value === null) return refusal(400, WEIGHT);
  const { weight, ...others } = value as Record<string, unknown>;
  if (Object.keys(others).length > 0) return refusal(400, `${WEIGHT} and nothing else; PUT changes the rest`);
  const checked = readEndpoint({ url: pool.endpoint(id).url, weight });
  if (!checked.ok) return invalid("the weight cannot be used", checked.problems);
  return weight === undefined ? refusal(400, WEIGHT) : checked.value.weight;
}
