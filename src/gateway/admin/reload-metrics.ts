import { Counter, Gauge, type Registry } from "prom-client";
import { RELOAD_RESULTS, type Runtime } from "../../runtime/index.ts";

/** What became of reloads, read from the one who counts them. Of several processes that is the first. */
export function registerReloadMetrics(registry: Registry, { reloader }: Pick<Runtime, "reloader">): void {
  new Counter({
    name: "evenkeel_config_reloads_total",
    help: "Times that the configuration was read again, by what became of it.",
    labelNames: ["result"],
    aggregator: "first",
    registers: [registry],
    collect() {
      this.reset();
      for (const result of RELOAD_RESULTS) this.inc({ result }, reloader.counts[result]);
    },
  });
  new Gauge({
    name: "evenkeel_config_last_reload_success",
    help: "1: what is configured is in force; 0: the last reload was refused.",
    aggregator: "first",
    registers: [registry],
    collect() {
      this.set(Number(reloader.isUpToDate));
    },
  });
}
