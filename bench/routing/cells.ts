import { readWorkload, type Slo, scaleRate, scaleThinking, type Workload } from "../../src/sim/index.ts";
import { ALL, atMost, EXPERT_HOLD, goodput, goodputWithTpotTarget, type Target } from "./targets.ts";
import { traceText } from "./trace-text.ts";

/** One workload on one fleet: a row of the table. */
export interface Cell {
  readonly name: string;
  /** As `evenkeel simulate --fleet` takes it. */
  readonly fleet: string;
  readonly slo: Slo;
  /** `develop`: constants were chosen on it; `report`: looked at once they were frozen. */
  readonly use: "develop" | "report";
  /** What is to be reached; none: it is only shown. */
  readonly targets: readonly Target[];
  /** Whether several balancers are tried on it too. */
  readonly hasReplicas: boolean;
  /** @param seed Of what the trace leaves open: sampled requests, starts of sessions, places within a tick. */
  readonly workload: (traces: string, seed: number) => Workload;
}

const CHAT_SLO: Slo = { ttftMs: 2_000, tpotMs: 50 };
const AGENT_SLO: Slo = { ttftMs: 5_000, tpotMs: 50 };
const LARGE_MODEL_SLO: Slo = { ttftMs: 5_000, tpotMs: 80 };

const SERVEGEN_FILES = {
  r1: "servegen-deepseek-r1.jsonl.gz",
  "m-large": "servegen-m-large-head48h.jsonl.gz",
  "m-small": "servegen-m-small-head48h.jsonl.gz",
};

/** Seconds of the profiles that are drawn: long answers need longer to come to a steady state. */
const SERVEGEN_SECONDS = { r1: 1_800, "m-large": 300, "m-small": 120 };

/** At a rate of 1. Chosen so that x2 is near what eight endpoints can do, and on six beyond what their caches hold. */
const SESSION_GAP_MS = 20_000;

/** Answers of minutes, whose KV caches fill up. */
const KV_BOUND_TARGETS: readonly Target[] = [
  atMost("ttftMs", 0.35, ["plain"]),
  atMost("ttftMs", 1, ["own_hold"]),
  atMost("ttftMs", 1.1, ["expert_hold"]),
  atMost("e2eMs", 0.92, ["plain"]),
  atMost("e2eMs", 0.95, ["own_hold"]),
  atMost("e2eMs", 0.98, ["expert_hold"]),
  goodput(-0.5),
  atMost("longestWaitMs", 0.5, EXPERT_HOLD),
];

const EIGHT_H100 = { fleet: "8*llama8b-h100", slo: CHAT_SLO, use: "develop" } as const;
const EIGHT_H200 = { fleet: "8*llama8b-h200", slo: AGENT_SLO } as const;
const FOUR_H100 = { fleet: "4*llama8b-h100", slo: CHAT_SLO } as const;
const SIXTEEN_TP4 = { fleet: "16*llama70b-tp4-h100", slo: LARGE_MODEL_SLO } as const;

export const CELLS: readonly Cell[] = [
  cell(servegen("r1", 54_000, 2.95, 3_600), { ...SIXTEEN_TP4, use: "report", targets: KV_BOUND_TARGETS }),
  cell(servegen("r1", 72_000, 2.95, 3_600), { ...SIXTEEN_TP4, use: "report", targets: KV_BOUND_TARGETS }),
  cell(mooncake("conversation", 1.4), {
    fleet: "8*llama70b-tp4-h100",
    slo: LARGE_MODEL_SLO,
    use: "report",
    targets: usualTargets(1.02, 0.94, 0),
  }),
  cell(mooncake("conversation", 2), {
    fleet: "4*llama8b-h100,4*llama8b-a100",
    slo: CHAT_SLO,
    use: "report",
    targets: usualTargets(1.02, 0.95, 2),
  }),
  cell(weka(100, 199, 1.4), { ...EIGHT_H200, use: "report", targets: usualTargets(0.85, 0.97, 0) }),
  cell(weka(100, 199, 2), { ...EIGHT_H200, use: "report", targets: usualTargets(0.7, 0.9, 1) }),
  cell(weka(100, 199, 2), {
    ...{ fleet: "6*llama8b-h200", slo: AGENT_SLO, use: "report" },
    targets: usualTargets(0.7, 0.6, 8),
  }),
  cell(azure("code", 2), {
    fleet: "4*llama8b-a100",
    slo: CHAT_SLO,
    use: "report",
    targets: [
      atMost("ttftMs", 1),
      atMost("e2eMs", 0.94, ["plain"]),
      goodput(-0.5, ["plain"]),
      goodputWithTpotTarget(-5),
    ],
  }),
  cell(servegen("m-large", 54_000, 1.55), {
    ...FOUR_H100,
    use: "report",
    targets: [
      atMost("ttftMs", 1.02),
      atMost("e2eMs", 0.99, ["plain"]),
      goodput(0, ["plain"]),
      goodputWithTpotTarget(-3),
    ],
  }),
  cell(servegen("m-large", 14_400, 1.05), {
    fleet: "5*llama8b-h100",
    slo: CHAT_SLO,
    use: "report",
    targets: [...usualTargets(1.1, 1, -0.5), atMost("ttftP99Ms", 1.2)],
  }),
  cell(mooncake("conversation", 3), { ...EIGHT_H100, targets: usualTargets(1.02, 0.89, 0), hasReplicas: true }),
  cell(mooncake("conversation", 3.5), { ...EIGHT_H100, targets: usualTargets(1.02, 0.85, 0) }),
  cell(mooncake("conversation", 4), { ...EIGHT_H100, targets: [atMost("e2eMs", 1), goodput(0)] }),
  cell(mooncake("synthetic", 3), { ...EIGHT_H100, targets: usualTargets(1.02, 0.8, 0) }),
  cell(azure("conv", 6), { ...FOUR_H100, use: "develop" }),
  cell(weka(0, 99, 1.4), { ...EIGHT_H200, use: "develop" }),
  cell(weka(0, 99, 2), { fleet: "4*llama8b-h200", slo: AGENT_SLO, use: "develop" }),
  cell(servegen("m-small", 0, 2), { ...FOUR_H100, use: "develop" }),
  cell(servegen("m-large", 0, 1.2), { ...FOUR_H100, use: "develop" }),
  cell(servegen("r1", 0, 2.4), { ...SIXTEEN_TP4, use: "develop" }),
  cell(servegen("r1", 18_000, 2.4), { ...SIXTEEN_TP4, use: "develop", hasReplicas: true }),
];

/** What tells one cell from every other. */
export function keyOf({ name, fleet }: Cell): string {
  return `${name}, ${fleet}`;
}

/** Mean TTFT and E2E as a multiple of the best of all, and points of goodput above it. */
function usualTargets(ttft: number, e2e: number, points: number): Target[] {
  return [atMost("ttftMs", ttft, ALL), atMost("e2eMs", e2e, ALL), goodput(points, ALL)];
}

function cell(
  traffic: Pick<Cell, "name" | "workload">,
  rest: Pick<Cell, "fleet" | "slo" | "use"> & Partial<Cell>,
): Cell {
  return { targets: [], hasReplicas: false, ...traffic, ...rest };
}

function servegen(
  family: keyof typeof SERVEGEN_FILES,
  startS: number,
  rate: number,
  durationS: number = SERVEGEN_SECONDS[family],
): Pick<Cell, "name" | "workload"> {
  const name = `${family} ${startS} s x${rate}`;
  return {
    name,
    workload: (traces, seed) => {
      const text = traceText(traces, SERVEGEN_FILES[family]);
      return scaleRate(readWorkload(text, { name, startS, durationS, seed }), rate);
    },
  };
}

function mooncake(trace: "conversation" | "synthetic", rate: number): Pick<Cell, "name" | "workload"> {
  const name = `${trace} x${rate}`;
  return {
    name,
    workload: (traces, seed) =>
      scaleRate(readWorkload(traceText(traces, `mooncake-${trace}.jsonl`), { name, seed }), rate),
  };
}

function azure(trace: "code" | "conv", rate: number): Pick<Cell, "name" | "workload"> {
  const name = `azure ${trace} x${rate}`;
  return {
    name,
    workload: (traces) => scaleRate(readWorkload(traceText(traces, `azure-2023-${trace}.csv`), { name }), rate),
  };
}

function weka(from: number, to: number, rate: number): Pick<Cell, "name" | "workload"> {
  const name = `weka ${from}-${to} x${rate}`;
  return {
    name,
    workload: (traces, seed) => {
      const sessions = readWorkload(traceText(traces, "weka-agentic-head200.jsonl.gz"), {
        name,
        sessions: { from, to },
        seed,
        sessionGapMs: SESSION_GAP_MS,
        maxPromptTokens: 400_000,
        blockTokens: 512,
      });
      // Starts alone would change little: the sessions of a cell overlap however close they begin.
      return scaleThinking(scaleRate(sessions, rate), rate);
    },
  };
}
