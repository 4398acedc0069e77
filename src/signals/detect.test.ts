import { describe, expect, it } from "vitest";
import { type Detection, detectEngine } from "./detect.ts";
import type { ProbeAnswer } from "./probe-client.ts";

const answered = (body: unknown, status = 200): ProbeAnswer => ({
  kind: "answered",
  status,
  body: JSON.stringify(body),
});
const notFound = answered({ error: "not found" }, 404);
const unauthorized = answered({ error: "Unauthorized" }, 401);
const modelsOwnedBy = (...owners: readonly string[]): ProbeAnswer =>
  answered({ data: owners.map((owned_by, index) => ({ id: `m${index}`, owned_by })) });

async function detect(answers: Record<string, ProbeAnswer>, asked: string[] = []): Promise<Detection> {
  return detectEngine(async (path) => {
    asked.push(path);
    return answers[path] ?? notFound;
  });
}

describe("detectEngine", () => {
  it.each<[string, Record<string, ProbeAnswer>, string]>([
    ["the owner vllm", { "/v1/models": modelsOwnedBy("vllm") }, "vllm"],
    ["the owner sglang", { "/v1/models": modelsOwnedBy("sglang") }, "sglang"],
    ["the owner some builds of SGLang name", { "/v1/models": modelsOwnedBy("nvidia") }, "sglang"],
    ["the owner tensorrt_llm", { "/v1/models": modelsOwnedBy("tensorrt_llm") }, "trtllm"],
    ["the owner lmdeploy", { "/v1/models": modelsOwnedBy("lmdeploy") }, "lmdeploy"],
    ["the owner llamacpp", { "/v1/models": modelsOwnedBy("llamacpp") }, "llamacpp"],
    ["the owner evenkeel", { "/v1/models": modelsOwnedBy("evenkeel") }, "evenkeel"],
    ["Ollama's usual namespace", { "/v1/models": modelsOwnedBy("library") }, "ollama"],
    ["a known owner behind an unknown one", { "/v1/models": modelsOwnedBy("me", "vllm") }, "vllm"],
    [
      "Ollama with models of a user's namespace",
      { "/v1/models": modelsOwnedBy("alice"), "/api/version": answered({ version: "0.12.0" }) },
      "ollama",
    ],
    ["Ollama without models", { "/v1/models": modelsOwnedBy(), "/api/version": answered({ version: "1" }) }, "ollama"],
    [
      "TGI, whose owner is the model",
      { "/v1/models": modelsOwnedBy("org/model"), "/info": answered({ max_concurrent_requests: 128 }) },
      "tgi",
    ],
    ["SGLang without a list", { "/server_info": answered({ max_total_num_tokens: 1 }) }, "sglang"],
    ["an older SGLang without a list", { "/get_server_info": answered({ max_total_num_tokens: 1 }) }, "sglang"],
    ["llama.cpp without a list", { "/props": answered({ total_slots: 4 }) }, "llamacpp"],
    ["vLLM behind a key", { "/v1/models": unauthorized, "/version": answered({ version: "0.32.0" }) }, "vllm"],
    ["any other server with a list", { "/v1/models": modelsOwnedBy("someone") }, "openai"],
    [
      "no vLLM in a server that has a version and another owner",
      { "/v1/models": modelsOwnedBy("someone"), "/version": answered({ version: "1" }) },
      "openai",
    ],
  ])("finds %s", async (_name, answers, engine) => {
    expect(await detect(answers)).toEqual({ kind: "detected", engine });
  });

  it.each<[string, ProbeAnswer]>([
    ["nobody answers", { kind: "failed", reason: "ECONNREFUSED" }],
    ["it takes too long", { kind: "timed_out", reason: "no answer" }],
    ["it is loading", answered({ error: { message: "Loading model" } }, 503)],
    ["it is broken", answered({}, 500)],
  ])("asks nothing further when %s", async (_name, models) => {
    const asked: string[] = [];
    expect(await detect({ "/v1/models": models }, asked)).toEqual({ kind: "undecided", models });
    expect(asked).toEqual(["/v1/models"]);
  });

  it("is undecided about a server without models and signs", async () => {
    expect(await detect({})).toEqual({ kind: "undecided", models: notFound });
  });

  it("is not misled by a web application that answers 200 to every path", async () => {
    const page: ProbeAnswer = { kind: "answered", status: 200, body: "<!doctype html>" };
    expect(await detectEngine(async () => page)).toEqual({ kind: "undecided", models: page });
  });
});
