import type { Runtime } from "../runtime/index.ts";
import type { GatewayMetrics } from "./admin/metrics.ts";
import type { SessionKeyReader } from "./request/session-key.ts";
import type { Upstreams } from "./upstream.ts";
import type { Watchdog } from "./watchdog.ts";

/** What every request needs of the gateway around it. */
export interface GatewayParts {
  readonly runtime: Runtime;
  readonly upstreams: Upstreams;
  readonly watchdog: Watchdog;
  readonly sessionKeys: SessionKeyReader;
  readonly metrics: GatewayMetrics;
}
