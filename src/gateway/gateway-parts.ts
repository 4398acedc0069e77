import type { Runtime } from "../runtime/index.ts";
import type { Access } from "./access/access.ts";
import type { GatewayMetrics } from "./admin/metrics.ts";
import type { PoolBudgets } from "./failover/pool-budgets.ts";
import type { BufferBudget } from "./request/buffer-budget.ts";
import type { LoopTurns } from "./request/loop-turns.ts";
import type { SenderReaders } from "./request/sender.ts";
import type { Upstreams } from "./upstream/upstreams.ts";
import type { Watchdog } from "./watchdog.ts";

/** What every request needs of the gateway around it. */
export interface GatewayParts {
  readonly runtime: Runtime;
  readonly upstreams: Upstreams;
  readonly watchdog: Watchdog;
  readonly senders: SenderReaders;
  readonly metrics: GatewayMetrics;
  readonly access: Access;
  readonly buffers: BufferBudget;
  readonly budgets: PoolBudgets;
  readonly turns: LoopTurns;
}
