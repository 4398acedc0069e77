import { asObject, type JsonObject, parseJson } from "./json.ts";

/** A model as an engine lists it. */
export interface ServedModel {
  readonly id: string;
  /** Prompt and output together, in tokens, that one request may take; undefined: not said. */
  readonly contextTokens: number | undefined;
  /** Undefined: not said. */
  readonly ownedBy: string | undefined;
}

/** Reads the answer to `GET /v1/models`, each id once; undefined: it is not a model list. */
export function readModels(body: string): readonly ServedModel[] | undefined {
  const data = parseJson(body)?.data;
  if (!Array.isArray(data)) return undefined;
  const models = new Map<string, ServedModel>();
  for (const entry of data) {
    const model = readModel(asObject(entry));
    if (model !== undefined && !models.has(model.id)) models.set(model.id, model);
  }
  return [...models.values()];
}

function readModel(entry: JsonObject | undefined): ServedModel | undefined {
  const id = entry?.id;
  if (entry === undefined || typeof id !== "string" || id === "") return undefined;
  const ownedBy = entry.owned_by;
  return {
    id,
    // vLLM, SGLang and LMDeploy say max_model_len; llama.cpp says how much one slot holds.
    contextTokens: positive(entry.max_model_len) ?? positive(asObject(entry.meta)?.n_ctx),
    ownedBy: typeof ownedBy === "string" ? ownedBy : undefined,
  };
}

function positive(value: unknown): number | undefined {
  return typeof value === "number" && value > 0 && Number.isFinite(value) ? value : undefined;
}
