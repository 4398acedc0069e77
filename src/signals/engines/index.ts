import type { EngineKind } from "../../core/index.ts";
import type { EngineAdapter } from "../adapter.ts";
import { evenkeel } from "./evenkeel.ts";
import { llamacpp } from "./llamacpp.ts";
import { lmdeploy } from "./lmdeploy.ts";
import { ollama } from "./ollama.ts";
import { openai } from "./openai.ts";
import { sglang } from "./sglang.ts";
import { tgi } from "./tgi.ts";
import { trtllm } from "./trtllm.ts";
import { vllm } from "./vllm.ts";

/** The adapter of each engine kind. A new engine is one file, one line here and one row in docs/engines.md. */
export const engineAdapters: Readonly<Record<EngineKind, EngineAdapter>> = {
  vllm,
  sglang,
  tgi,
  llamacpp,
  ollama,
  trtllm,
  lmdeploy,
  evenkeel,
  openai,
};
