import type { Peer } from "../peer.ts";
import { rustRouter } from "./rust-router.ts";

/** The router of SGLang. */
export const sglang: Peer = rustRouter({
  name: "sglang",
  packageName: "sglang-router",
  version: "0.3.2",
  command: ["launch"],
  logLevel: "warn",
});
