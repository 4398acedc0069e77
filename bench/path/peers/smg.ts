import type { Peer } from "../peer.ts";
import { rustRouter } from "./rust-router.ts";

/** SMG: a gateway of the same stem as the router of SGLang. */
export const smg: Peer = rustRouter({
  name: "smg",
  packageName: "smg",
  version: "1.13.0",
  command: ["launch"],
  logLevel: "warn",
});
