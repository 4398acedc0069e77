import type { Peer } from "../peer.ts";
import { envoy } from "./envoy.ts";
import { evenkeel } from "./evenkeel.ts";
import { nginx } from "./nginx.ts";

/** Every peer; the first is what the others are compared with. */
export const PEERS: readonly Peer[] = [nginx, envoy, evenkeel];
