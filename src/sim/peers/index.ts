import { aibrixPrefixCache } from "./aibrix.ts";
import { dynamoPeers, dynamoQueuePeers } from "./dynamo.ts";
import { expertHoldPeers } from "./expert-hold.ts";
import { kubeaiPrefixHash } from "./kubeai.ts";
import { llmDFlowControl, llmDPeers } from "./llm-d.ts";
import { lmetric } from "./lmetric.ts";
import { mooncakeConductor } from "./mooncake.ts";
import type { PeerPolicy } from "./peer-policy.ts";
import { prebleE2 } from "./preble.ts";
import { sglangPeers } from "./sglang.ts";
import { skywalker } from "./skywalker.ts";
import { smgPeers } from "./smg.ts";

export type { PeerOptions, PeerPolicy } from "./peer-policy.ts";

/** Every comparison policy, in the order of docs/policies/peers.md. They are no choice of a configuration. */
export const peerPolicies: readonly PeerPolicy[] = [
  ...sglangPeers,
  ...smgPeers,
  ...dynamoPeers,
  ...llmDPeers,
  lmetric,
  aibrixPrefixCache,
  kubeaiPrefixHash,
  mooncakeConductor,
  prebleE2,
  ...dynamoQueuePeers,
  skywalker,
  llmDFlowControl,
  ...expertHoldPeers,
];
