/**
 * Inference servers whose health and metrics are understood. `evenkeel` is the built-in engine;
 * `openai` is anything else that lists its models under `/v1/models`.
 */
export const ENGINE_KINDS = [
  "vllm",
  "sglang",
  "tgi",
  "llamacpp",
  "ollama",
  "trtllm",
  "lmdeploy",
  "evenkeel",
  "openai",
] as const;

export type EngineKind = (typeof ENGINE_KINDS)[number];
