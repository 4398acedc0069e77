import { z } from "zod";
import { endpointUrl } from "./endpoint-url.ts";
import { formatPath, type Path } from "./path.ts";

/**
 * What no single setting can show: names used twice, settings that exclude each other. Runs even when
 * settings are wrong, so that all problems are found at once, over whatever of them can be read.
 */
export function crossCheck(settings: object, context: z.core.$RefinementCtx): void {
  const report: Report = (path, expected) => context.addIssue({ code: "custom", path: [...path], message: expected });
  const draft = settingsDraft.parse(settings);
  checkAddresses(draft, report);
  checkShorthand(settings, report);
  const pools = draft.pools?.map((pool, index) => ({ ...pool, path: ["pools", index] })) ?? [{ ...draft, path: [] }];
  checkUnique(pools, "name", "a name no other pool has", report);
  for (const pool of pools) checkEndpoints(pool, report);
  for (const [index, pool] of (draft.pools ?? []).entries()) {
    const isEmpty = pool.endpoints?.length === 0 && pool.discovery?.length === 0;
    if (isEmpty) report(["pools", index, "endpoints"], "at least one endpoint (or discovery)");
  }
  for (const list of ["keys", "adminKeys"] as const) {
    const keys = (draft[list] ?? []).map((key, index) => ({ ...key, path: [list, index] }));
    checkUnique(keys, "id", "an id of its own", report);
    checkUnique(keys, "hash", "the hash of a key that no other entry has", report);
  }
  checkModels(pools, report);
}

type Report = (path: Path, expected: string) => void;

const readable = <Type extends z.ZodType>(type: Type) => type.optional().catch(undefined);
const names = readable(z.array(z.string()));
const address = readable(z.object({ host: z.string(), port: z.number() }));
const url = endpointUrl.transform((location) => location.url);
const endpointDraft = readable(
  z.union([
    url.transform((alone) => ({ url: alone, id: undefined, models: undefined })),
    z.object({ url: readable(url), id: readable(z.string()), models: names }),
  ]),
);
const poolDraft = z.object({
  name: readable(z.string()),
  models: names,
  aliases: readable(z.map(z.string(), z.string())),
  endpoints: readable(z.array(endpointDraft)),
  discovery: readable(z.array(z.unknown())),
});
/** A key that was read already: its hash stands where it was written. */
const keyDraft = z
  .object({ id: readable(z.string()), sha256: readable(z.instanceof(Buffer)) })
  .transform(({ id, sha256 }) => ({ id, hash: sha256?.toString("hex") }));
const settingsDraft = poolDraft.extend({
  listen: address,
  admin: address,
  keys: readable(z.array(keyDraft)),
  adminKeys: readable(z.array(keyDraft)),
  pools: readable(z.array(poolDraft.catch({}))),
});

type PoolDraft = z.output<typeof poolDraft> & { readonly path: Path };

function checkAddresses({ listen, admin }: z.output<typeof settingsDraft>, report: Report): void {
  if (listen === undefined || admin === undefined || listen.port === 0) return;
  if (listen.port === admin.port && listen.host === admin.host) report(["admin"], "another address than listen");
}

function checkShorthand(settings: object, report: Report): void {
  if (!("pools" in settings)) {
    if (!("endpoints" in settings || "discovery" in settings)) {
      report(["endpoints"], "at least one endpoint (or discovery, or pools)");
    }
    return;
  }
  for (const key of ["endpoints", "discovery", "models", "aliases"]) {
    if (key in settings) report([key], "nothing here: it goes into a pool, as there are `pools`");
  }
}

function checkEndpoints({ path, endpoints = [], models }: PoolDraft, report: Report): void {
  const located = endpoints.map((endpoint, index) => ({
    url: endpoint?.url,
    id: endpoint?.id,
    models: endpoint?.models,
    path: [...path, "endpoints", index],
  }));
  const sameUrl = checkUnique(located, "url", "a URL that the pool does not have yet", report);
  const others = located.filter((endpoint) => !sameUrl.has(endpoint));
  checkUnique(others, "id", "an id of its own in the pool", report);
  if (models === undefined) return;
  for (const endpoint of located) {
    for (const [index, model] of (endpoint.models ?? []).entries()) {
      if (!models.includes(model)) report([...endpoint.path, "models", index], "a model of its pool");
    }
  }
}

/** Reports every entry whose `key` an earlier one has; returns those. */
function checkUnique<
  Key extends string,
  Entry extends { readonly path: Path } & { readonly [K in Key]?: string | undefined },
>(entries: readonly Entry[], key: Key, expected: string, report: Report): ReadonlySet<Entry> {
  const first = new Map<string, Entry>();
  const repeated = new Set<Entry>();
  for (const entry of entries) {
    const value: string | undefined = entry[key];
    if (value === undefined) continue;
    const earlier = first.get(value);
    if (earlier === undefined) {
      first.set(value, entry);
      continue;
    }
    repeated.add(entry);
    report([...entry.path, key], `${expected} (${formatPath([...earlier.path, key])} has it)`);
  }
  return repeated;
}

/** Models and aliases share one name space: a request's model name leads to one pool and one model. */
function checkModels(pools: readonly PoolDraft[], report: Report): void {
  const owners = new Map<string, { readonly pool: PoolDraft; readonly path: Path }>();
  for (const pool of pools) {
    for (const { name, path } of modelsOf(pool)) {
      const owner = owners.get(name);
      if (owner === undefined) owners.set(name, { pool, path });
      else if (owner.pool !== pool) report(path, `a model no other pool has (${formatPath(owner.path)} has it)`);
    }
  }
  for (const pool of pools) {
    for (const [alias, model] of pool.aliases ?? []) {
      const path = [...pool.path, "aliases", alias];
      const owner = owners.get(alias);
      if (owner !== undefined) report(path, `a name that nothing else has (${formatPath(owner.path)} has it)`);
      else owners.set(alias, { pool, path });
      if (pool.aliases?.has(model)) report(path, "a model, not another alias");
      else if (!mayServe(pool, model)) report(path, "a model of its pool");
    }
  }
}

function modelsOf(pool: PoolDraft): { readonly name: string; readonly path: Path }[] {
  const ofEndpoints = (pool.endpoints ?? []).flatMap((endpoint, index) =>
    listed(endpoint?.models, [...pool.path, "endpoints", index, "models"]),
  );
  return [...listed(pool.models, [...pool.path, "models"]), ...ofEndpoints];
}

function listed(models: readonly string[] = [], path: Path): { readonly name: string; readonly path: Path }[] {
  return models.map((name, index) => ({ name, path: [...path, index] }));
}

/** Models may yet be discovered unless the pool lists them, or every one of its endpoints does. */
function mayServe(pool: PoolDraft, model: string): boolean {
  const isListed = modelsOf(pool).some(({ name }) => name === model);
  const isComplete = pool.models !== undefined || (pool.endpoints ?? []).every((endpoint) => endpoint?.models);
  return isListed || !isComplete;
}
