import type { Peer } from "../peer.ts";
import { envoy } from "./envoy.ts";
import { evenkeel } from "./evenkeel.ts";
import { haproxy } from "./haproxy.ts";
import { litellm } from "./litellm.ts";
import { nginx } from "./nginx.ts";
import { portkey } from "./portkey.ts";
import { sglang } from "./sglang.ts";
import { smg } from "./smg.ts";
import { vllm } from "./vllm.ts";

/** The peers of every run; the first is what the others are compared with. */
export const PEERS: readonly Peer[] = [nginx, haproxy, envoy, sglang, smg, vllm, evenkeel];

/** Peers that are measured when asked for: they take seconds where the others take milliseconds. */
export const RECORD_PEERS: readonly Peer[] = [portkey, litellm];
