import { z } from "zod";

/**
 * Segments of the paths by which engines are controlled or looked into (vLLM, SGLang, TGI, llama.cpp,
 * Ollama, TensorRT-LLM, LMDeploy). Clients of a balancer never reach them.
 */
const CONTROL_SEGMENTS: ReadonlySet<string> = new Set([
  "abort_request",
  "admin",
  "blobs",
  "clear_hicache_storage_backend",
  "close_session",
  "collective_rpc",
  "configure_logging",
  "continue_generation",
  "copy",
  "create",
  "delete",
  "destroy_weights_update_group",
  "dump_expert_distribution_record",
  "flush_cache",
  "freeze_gc",
  "get_internal_state",
  "get_load",
  "get_model_info",
  "get_server_info",
  "get_weights_by_name",
  "health",
  "health_generate",
  "init_weights_update_group",
  "is_scaling_elastic_ep",
  "is_sleeping",
  "kv_cache_events",
  "load",
  "load_lora_adapter",
  "loads",
  "lora-adapters",
  "metrics",
  "model_info",
  "pause",
  "pause_generation",
  "props",
  "ps",
  "pull",
  "push",
  "release_memory_occupation",
  "reset_encoder_cache",
  "reset_mm_cache",
  "reset_prefix_cache",
  "resume",
  "resume_memory_occupation",
  "scale_elastic_ep",
  "server_info",
  "set_internal_state",
  "sleep",
  "slots",
  "slow_down",
  "start_expert_distribution_record",
  "start_profile",
  "stop_expert_distribution_record",
  "stop_profile",
  "unload",
  "unload_lora_adapter",
  "update_weights",
  "update_weights_from_disk",
  "update_weights_from_distributed",
  "update_weights_from_tensor",
  "wake_up",
  "wakeup",
]);

const expected = "a path such as /v1/audio/transcriptions";

/** A path that is forwarded although the gateway has no handling of its own for it. Compared as it is, so it needs no escapes. */
export const passthroughPath: z.ZodType<string, string> = z
  .string({ error: expected })
  .regex(/^(\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$/, { error: expected })
  .refine((path) => !isControlPath(path), { error: "a path that does not control or inspect an engine" })
  .meta({ value: "path" });

function isControlPath(path: string): boolean {
  return path
    .toLowerCase()
    .split("/")
    .some((segment) => CONTROL_SEGMENTS.has(segment));
}
