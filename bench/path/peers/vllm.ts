import type { Peer } from "../peer.ts";
import { rustRouter } from "./rust-router.ts";

/** The router of vLLM. */
export const vllm: Peer = rustRouter({
  name: "vllm",
  packageName: "vllm-router",
  version: "0.1.17",
  command: [],
  logLevel: "warning",
  remarks: ["asks every endpoint to tokenize each prompt before it chooses"],
});
