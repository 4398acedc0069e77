import type { EngineKind } from "../core/index.ts";
import { engineAdapters } from "./engines/index.ts";
import { type JsonObject, parseJson } from "./json.ts";
import { readModels, type ServedModel } from "./models.ts";
import type { ProbeAnswer } from "./probe-client.ts";

export type Detection =
  | { readonly kind: "detected"; readonly engine: EngineKind }
  /** `models` is the answer to `GET /v1/models`, which says why nothing could be told. */
  | { readonly kind: "undecided"; readonly models: ProbeAnswer };

/** A path only one engine answers in this way. */
interface Sign {
  readonly path: string;
  readonly engine: EngineKind;
  matches(body: JsonObject): boolean;
}

const SIGNS: readonly Sign[] = [
  { path: "/props", engine: "llamacpp", matches: (body) => "total_slots" in body },
  { path: "/info", engine: "tgi", matches: (body) => "max_concurrent_requests" in body },
  { path: "/api/version", engine: "ollama", matches: (body) => typeof body.version === "string" },
  { path: "/server_info", engine: "sglang", matches: isSglangInfo },
  { path: "/get_server_info", engine: "sglang", matches: isSglangInfo },
];

/**
 * vLLM keeps `/version` open when a key guards its model list. It stands last and counts only without a list, because
 * many servers have such a path, and vLLM would have said so in the list.
 */
const VLLM_BEHIND_A_KEY: Sign = {
  path: "/version",
  engine: "vllm",
  matches: (body) => typeof body.version === "string",
};

/** Finds out which engine answers: by the owner in its model list, else by paths that only one engine has. */
export async function detectEngine(get: (path: string) => Promise<ProbeAnswer>): Promise<Detection> {
  const answer = await get("/v1/models");
  if (!mayServe(answer)) return { kind: "undecided", models: answer };
  const models = answer.status === 200 ? readModels(answer.body) : undefined;
  const engine = engineByOwner(models ?? []) ?? (await engineBySign(get, models !== undefined));
  if (engine !== undefined) return { kind: "detected", engine };
  return models === undefined ? { kind: "undecided", models: answer } : { kind: "detected", engine: "openai" };
}

/** False: nobody answers, or a server that is loading or broken answers every path alike. */
function mayServe(answer: ProbeAnswer): answer is ProbeAnswer & { readonly kind: "answered" } {
  return answer.kind === "answered" && answer.status < 500;
}

function engineByOwner(models: readonly ServedModel[]): EngineKind | undefined {
  for (const { ownedBy } of models) {
    const adapter = Object.values(engineAdapters).find(
      (each) => ownedBy !== undefined && each.ownedBy.includes(ownedBy),
    );
    if (adapter !== undefined) return adapter.kind;
  }
  return undefined;
}

async function engineBySign(
  get: (path: string) => Promise<ProbeAnswer>,
  hasModelList: boolean,
): Promise<EngineKind | undefined> {
  for (const sign of hasModelList ? SIGNS : [...SIGNS, VLLM_BEHIND_A_KEY]) {
    const answer = await get(sign.path);
    if (answer.kind !== "answered" || answer.status !== 200) continue;
    const body = parseJson(answer.body);
    if (body !== undefined && sign.matches(body)) return sign.engine;
  }
  return undefined;
}

function isSglangInfo(body: JsonObject): boolean {
  return "max_total_num_tokens" in body;
}
