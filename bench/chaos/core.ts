import { fairOrder } from "../../src/admission/index.ts";
import { type PolicyDefinition, policyDefinitions } from "../../src/core/index.ts";
import { RandomTraffic, type TrafficCounts } from "../../test/properties/random-traffic.ts";
import { type Host, hostText } from "../support/host.ts";
import { textTable } from "../support/table.ts";

/** What the pure core went through under one policy. */
export interface CoreRow extends TrafficCounts {
  readonly policy: string;
  readonly seconds: number;
}

/** `--json` prints exactly this. */
export interface CoreResult {
  readonly host: Host;
  readonly seed: number;
  readonly rows: readonly CoreRow[];
}

/** The default policy gets as many as all others together: it alone has lines of its own for each endpoint. */
const DEFAULT_SHARE = 0.5;

/** Sends `requests` through the core, over all policies. @throws when the ledger is not the sum of its leases once. */
export function runCore(requests: number, seed: number): CoreRow[] {
  const [first, ...others] = policyDefinitions;
  const rows = others.map((policy) =>
    runPolicy(policy, Math.ceil((requests * (1 - DEFAULT_SHARE)) / others.length), seed),
  );
  return [runPolicy(first as PolicyDefinition, Math.ceil(requests * DEFAULT_SHARE), seed), ...rows];
}

function runPolicy(policy: PolicyDefinition, requests: number, seed: number): CoreRow {
  const startMs = performance.now();
  const traffic = new RandomTraffic({ policy, whenFull: "hold", order: fairOrder(), seed });
  traffic.run(requests);
  traffic.finish();
  return { policy: policy.name, ...traffic.counts, seconds: (performance.now() - startMs) / 1000 };
}

/** The run as text. */
export function coreText({ host, seed, rows }: CoreResult): string {
  const steps = rows.reduce((sum, row) => sum + row.steps, 0);
  const requests = rows.reduce((sum, row) => sum + row.requests, 0);
  return [
    hostText(host),
    `${requests} requests, ${steps} steps, seed ${seed}; after each step the ledger was the sum of its leases.`,
    "",
    textTable([
      ["policy", ...COUNTS, "s"],
      ...rows.map((row) => [row.policy, ...COUNTS.map((name) => String(row[name])), row.seconds.toFixed(1)]),
    ]),
  ].join("\n");
}

const COUNTS = ["requests", "routed", "refused", "held", "left", "retried", "disturbances"] as const;
