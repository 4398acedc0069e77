import type { EngineKind, EngineSignals } from "../../src/core/index.ts";

/** What an engine says on the wire, and how it must be understood. */
export interface EngineTexts {
  /** Metrics of a busy engine; empty: it has none. */
  readonly metrics: string;
  readonly signals: Partial<EngineSignals>;
  /** Body of a good health answer. */
  readonly healthy: string;
  /** Status and body while it cannot serve yet; undefined: its port is closed until it can. */
  readonly loading: { readonly status: number; readonly body: string } | undefined;
}

const VLLM_METRICS = `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny"} 7.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="tiny"} 3.0
# TYPE vllm:num_requests_waiting_by_reason gauge
vllm:num_requests_waiting_by_reason{engine="0",model_name="tiny",reason="capacity"} 2.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="tiny",reason="deferred"} 1.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.25
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="tiny"} 1200.0
vllm:prefix_cache_queries_created{engine="0",model_name="tiny"} 1.7959745501894088e+09
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="tiny"} 480.0
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{engine="0",model_name="tiny"} 2.0
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="tiny"} 1100.0
vllm:prompt_tokens_by_source_total{engine="0",model_name="tiny",source="local_compute"} 620.0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="tiny"} 5.4e+03
# TYPE vllm:request_prompt_tokens histogram
vllm:request_prompt_tokens_bucket{engine="0",le="1.0",model_name="tiny"} 0.0
vllm:request_prompt_tokens_sum{engine="0",model_name="tiny"} 900.0
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="32",cache_dtype="auto",engine="0",num_cpu_blocks="None",num_gpu_blocks="128"} 1.0
`;

const VLLM_SIGNALS: Partial<EngineSignals> = {
  runningRequests: 7,
  waitingRequests: 3,
  kvUsedRatio: 0.25,
  kvCapacityTokens: 127 * 32,
  kvBlockTokens: 32,
  promptTokensTotal: 1100,
  generatedTokensTotal: 5400,
  prefixHitTokensTotal: 480,
  prefixQueryTokensTotal: 1200,
  preemptionsTotal: 2,
};

/** One entry per engine kind, so that a new kind cannot go without. */
export const engineTexts: Readonly<Record<EngineKind, EngineTexts>> = {
  vllm: { metrics: VLLM_METRICS, signals: VLLM_SIGNALS, healthy: "", loading: undefined },
  evenkeel: {
    metrics: VLLM_METRICS,
    signals: VLLM_SIGNALS,
    healthy: '{"status":"ok"}',
    loading: { status: 503, body: '{"error":{"message":"loading"}}' },
  },
  sglang: {
    metrics: `# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 5.0
sglang:num_running_reqs_offline_batch{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 9.0
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 4.0
# TYPE sglang:token_usage gauge
sglang:token_usage{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 0.5
# TYPE sglang:max_total_num_tokens gauge
sglang:max_total_num_tokens{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 65536.0
# TYPE sglang:cache_hit_rate gauge
sglang:cache_hit_rate{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 0.9
# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{model_name="m"} 2000.0
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total{model_name="m"} 700.0
# TYPE sglang:cached_tokens_total counter
sglang:cached_tokens_total{cache_source="device",model_name="m"} 600.0
sglang:cached_tokens_total{cache_source="host",model_name="m"} 40.0
# TYPE sglang:num_retracted_requests_total counter
sglang:num_retracted_requests_total{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 1.0
`,
    signals: {
      runningRequests: 5,
      waitingRequests: 4,
      kvUsedRatio: 0.5,
      kvCapacityTokens: 65_536,
      promptTokensTotal: 2000,
      generatedTokensTotal: 700,
      prefixHitTokensTotal: 640,
      prefixQueryTokensTotal: 2000,
      preemptionsTotal: 1,
    },
    healthy: "",
    loading: { status: 503, body: "The server is still starting" },
  },
  tgi: {
    metrics: `# TYPE tgi_batch_current_size gauge
tgi_batch_current_size 6
# TYPE tgi_queue_size gauge
tgi_queue_size 2
# TYPE tgi_batch_current_max_tokens gauge
tgi_batch_current_max_tokens 4000
# TYPE tgi_batch_max_total_tokens gauge
tgi_batch_max_total_tokens 16000
# TYPE tgi_request_input_length histogram
tgi_request_input_length_bucket{le="16"} 1
tgi_request_input_length_sum 900
tgi_request_input_length_count 10
# TYPE tgi_request_generated_tokens histogram
tgi_request_generated_tokens_sum 350
tgi_request_generated_tokens_count 10
`,
    signals: {
      runningRequests: 6,
      waitingRequests: 2,
      kvUsedRatio: 0.25,
      kvCapacityTokens: 16_000,
      promptTokensTotal: 900,
      generatedTokensTotal: 350,
    },
    healthy: "",
    loading: undefined,
  },
  llamacpp: {
    metrics: `# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 700
# TYPE llamacpp:prompt_tokens_cached_total counter
llamacpp:prompt_tokens_cached_total 300
# TYPE llamacpp:tokens_predicted_total counter
llamacpp:tokens_predicted_total 250
# TYPE llamacpp:tokens_predicted_seconds_total counter
llamacpp:tokens_predicted_seconds_total 11.5
# TYPE llamacpp:prompt_tokens_seconds gauge
llamacpp:prompt_tokens_seconds 512.5
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 2
# TYPE llamacpp:requests_deferred gauge
llamacpp:requests_deferred 5
`,
    signals: {
      runningRequests: 2,
      waitingRequests: 5,
      promptTokensTotal: 1000,
      generatedTokensTotal: 250,
      prefixHitTokensTotal: 300,
      prefixQueryTokensTotal: 1000,
    },
    healthy: '{"status":"ok"}',
    loading: { status: 503, body: '{"error":{"message":"Loading model","type":"unavailable_error","code":503}}' },
  },
  ollama: { metrics: "", signals: {}, healthy: '{"version":"0.12.0"}', loading: undefined },
  trtllm: {
    metrics: `# TYPE trtllm_num_requests_running gauge
trtllm_num_requests_running{engine_type="trtllm",model_name="m"} 8.0
# TYPE trtllm_num_requests_waiting gauge
trtllm_num_requests_waiting{engine_type="trtllm",model_name="m"} 1.0
# TYPE trtllm_kv_cache_utilization gauge
trtllm_kv_cache_utilization{engine_type="trtllm",model_name="m"} 0.75
# TYPE trtllm_kv_cache_max_blocks gauge
trtllm_kv_cache_max_blocks{engine_type="trtllm",model_name="m"} 1000.0
# TYPE trtllm_kv_cache_tokens_per_block gauge
trtllm_kv_cache_tokens_per_block{engine_type="trtllm",model_name="m"} 32.0
# TYPE trtllm_prompt_tokens_total counter
trtllm_prompt_tokens_total{engine_type="trtllm",model_name="m"} 3000.0
# TYPE trtllm_prompt_cached_tokens_total counter
trtllm_prompt_cached_tokens_total{engine_type="trtllm",model_name="m"} 900.0
# TYPE trtllm_generation_tokens_total counter
trtllm_generation_tokens_total{engine_type="trtllm",model_name="m"} 1200.0
`,
    signals: {
      runningRequests: 8,
      waitingRequests: 1,
      kvUsedRatio: 0.75,
      kvCapacityTokens: 32_000,
      kvBlockTokens: 32,
      promptTokensTotal: 3000,
      generatedTokensTotal: 1200,
      prefixHitTokensTotal: 900,
      prefixQueryTokensTotal: 3000,
    },
    healthy: "",
    loading: undefined,
  },
  lmdeploy: {
    metrics: `# TYPE lmdeploy:num_requests_running gauge
lmdeploy:num_requests_running{engine="0",model_name="m"} 4.0
# TYPE lmdeploy:num_requests_waiting gauge
lmdeploy:num_requests_waiting{engine="0",model_name="m"} 2.0
# TYPE lmdeploy:num_api_requests_waiting gauge
lmdeploy:num_api_requests_waiting{engine="0",model_name="m"} 3.0
# TYPE lmdeploy:gpu_cache_usage_perc gauge
lmdeploy:gpu_cache_usage_perc{engine="0",model_name="m"} 0.125
# TYPE lmdeploy:prefix_cache_hit_rate gauge
lmdeploy:prefix_cache_hit_rate{engine="0",model_name="m"} 0.5
# TYPE lmdeploy:prompt_tokens_total counter
lmdeploy:prompt_tokens_total{engine="0",model_name="m"} 800.0
# TYPE lmdeploy:generation_tokens_total counter
lmdeploy:generation_tokens_total{engine="0",model_name="m"} 90.0
`,
    signals: {
      runningRequests: 4,
      waitingRequests: 5,
      kvUsedRatio: 0.125,
      promptTokensTotal: 800,
      generatedTokensTotal: 90,
    },
    healthy: '{"status":"healthy"}',
    loading: { status: 503, body: '{"status":"initializing"}' },
  },
  openai: {
    metrics: "",
    signals: {},
    healthy: '{"object":"list","data":[{"id":"m","object":"model","owned_by":"someone"}]}',
    loading: { status: 503, body: '{"error":{"message":"model is loading"}}' },
  },
};
