import { hostText } from "../support/host.ts";
import { figure, textTable } from "../support/table.ts";
import { bestBy, type Contender, type Figures, type Metric, PEER_CLASSES, type PeerClass } from "./contest.ts";
import type { CellResult, RoutingResult } from "./result.ts";
import { compare, type Target, type Verdict } from "./targets.ts";

/** How a metric is shown. */
interface Column {
  readonly metric: Metric;
  readonly name: string;
  readonly unit: string;
  /** What it is divided by to come to the unit. */
  readonly per: number;
  readonly digits: number;
}

const COLUMNS: readonly Column[] = [
  { metric: "ttftMs", name: "TTFT", unit: "ms", per: 1, digits: 0 },
  { metric: "e2eMs", name: "E2E", unit: "ms", per: 1, digits: 0 },
  { metric: "goodputPercent", name: "goodput", unit: "%", per: 1, digits: 1 },
  { metric: "ttftP99Ms", name: "p99 TTFT", unit: "ms", per: 1, digits: 0 },
  { metric: "longestWaitMs", name: "longest wait", unit: "s", per: 1000, digits: 1 },
];

const CLASS_NAMES: Readonly<Record<PeerClass, string>> = {
  plain: "plain",
  own_hold: "own hold",
  expert_hold: "expert hold",
};

const OURS = "least_delay";
const OURS_WITH_TARGET = "least_delay, TPOT target";

/** The run as text. */
export function routingText(result: RoutingResult): string {
  const { cells, speed, wallMs } = result;
  return [
    hostText(result.host),
    seedsText(result),
    "Each peer row shows the best of its class by that metric alone, whoever it is, and ours against it: times as a ratio, goodput as points.",
    "",
    ...cells.flatMap((cell) => [...cellLines(cell), ""]),
    "Told wrong, first seed: mean E2E over that of the best peer, where ours is ahead when told the truth",
    disturbedTable(cells),
    "",
    ...cells.flatMap(replicatedLines),
    "",
    ...targetLines(cells),
    "",
    `Simulator: ${speed.requests} requests in ${speed.runs} runs, ${figure(speed.requestsPerSecond, 0)} per second and process`,
    `Took ${figure(wallMs / 1000, 0)} s; ${figure(speed.cpuMs / 1000, 0)} s of processor time`,
  ].join("\n");
}

/** False: some target is missed. */
export function isAllMet({ cells }: RoutingResult): boolean {
  return cells.every(
    ({ verdicts, disturbed, replicated }) =>
      verdicts.every(({ isMet }) => isMet) &&
      (disturbed?.every(({ isMet }) => isMet) ?? true) &&
      (replicated?.isMet ?? true),
  );
}

function seedsText({ seeds }: RoutingResult): string {
  if (seeds === 1) return "One seed, all peers.";
  return (
    `Means over ${seeds} seeds where there are targets, elsewhere one. All peers ran the first seed; the others were run by ` +
    "those that came within 10 % of the best of their class by mean TTFT, mean E2E, goodput or p99 TTFT, two by each at most."
  );
}

function cellLines({ cell, seeds, ours, contenders, verdicts, unfinished }: CellResult): string[] {
  const { name, fleet, slo, use } = cell;
  const head = COLUMNS.flatMap((column) => [`${column.name} ${column.unit}`, "ours"]);
  const { withTpotTarget } = ours;
  const groups = PEER_CLASSES.map(
    (each) => [each, contenders.filter((contender) => contender.class === each)] as const,
  );
  return [
    `${name}, ${fleet} (${use}; good: TTFT ${slo.ttftMs / 1000} s, TPOT ${slo.tpotMs} ms; ${seeds === 1 ? "1 seed" : `${seeds} seeds`})`,
    textTable([
      ["", ...head],
      ownRow(OURS, ours.figures),
      ...(withTpotTarget === undefined ? [] : [ownRow(OURS_WITH_TARGET, withTpotTarget)]),
      ...groups.map(([each, peers]) => peerRow(CLASS_NAMES[each], peers, ours.figures)),
    ]),
    ...groups.map(([each, peers]) => `  ${CLASS_NAMES[each]}: ${bestNames(peers)}`),
    ...Object.entries(unfinished).map(([policy, requests]) => `  ${policy}: ${requests} requests did not end`),
    ...verdicts.map((verdict) => `  ${verdictText(verdict)}`),
  ];
}

function ownRow(name: string, figures: Figures): string[] {
  return [name, ...COLUMNS.flatMap((column) => [shown(column, figures[column.metric]), ""])];
}

function peerRow(name: string, peers: readonly Contender[], ours: Figures): string[] {
  return [
    name,
    ...COLUMNS.flatMap((column) => {
      const { metric } = column;
      const best = bestBy(metric, peers)?.figures[metric];
      return best === undefined
        ? ["-", "-"]
        : [shown(column, best), comparison(metric, compare(metric, ours[metric], best))];
    }),
  ];
}

function shown({ per, digits }: Column, value: number): string {
  return figure(value / per, digits);
}

function comparison(metric: Metric, value: number): string {
  if (!Number.isFinite(value)) return "-";
  if (metric !== "goodputPercent") return `x${figure(value, 3)}`;
  return `${value < 0 ? "" : "+"}${figure(value, 1)}`;
}

function bestNames(peers: readonly Contender[]): string {
  return COLUMNS.map(({ metric, name }) => `${name} ${bestBy(metric, peers)?.name ?? "-"}`).join(", ");
}

function verdictText({ target, rival, value, isMet }: Verdict): string {
  const { metric } = target;
  const text = `${targetText(target)}: ${comparison(metric, value)} against ${rival ?? "nobody"}, `;
  if (isMet) return `${text}met`;
  const by = Math.abs(value - target.limit);
  return `${text}MISSED by ${metric === "goodputPercent" ? `${figure(by, 1)} points` : figure(by, 3)}`;
}

function targetText({ metric, against, limit, hasTpotTarget }: Target): string {
  const name = COLUMNS.find((column) => column.metric === metric)?.name ?? metric;
  const rivals =
    typeof against === "string"
      ? against
      : against.length === PEER_CLASSES.length
        ? "best"
        : `best ${against.map((each) => CLASS_NAMES[each]).join(" or ")}`;
  const bound = metric === "goodputPercent" ? `>= ${rivals} ${limit < 0 ? "" : "+"}${limit}` : `<= ${limit}x ${rivals}`;
  return `${name}${hasTpotTarget ? " with a TPOT target" : ""} ${bound}`;
}

function disturbedTable(cells: readonly CellResult[]): string {
  const told = cells.filter(({ disturbed }) => disturbed !== undefined);
  const names = told[0]?.disturbed?.map(({ disturbance }) => disturbance) ?? [];
  return textTable([
    ["", ...names],
    ...told.map(({ cell, disturbed = [] }) => [
      `${cell.name}, ${cell.fleet}`,
      ...disturbed.map(({ e2eRatio, isMet }) => `${isMet ? "" : "MISSED "}x${figure(e2eRatio, 3)}`),
    ]),
  ]);
}

function replicatedLines({ cell, replicated }: CellResult): string[] {
  if (replicated === undefined) return [];
  const { count, exchangeMs, e2eLoss, aloneE2eLoss, isMet } = replicated;
  return [
    `${count} balancers exchanging every ${exchangeMs} ms, ${cell.name}: mean E2E ${percent(e2eLoss)} against one, ` +
      `${isMet ? "met" : "MISSED"} (at most +3 %); each for itself ${percent(aloneE2eLoss)}`,
  ];
}

function percent(share: number): string {
  return `${share < 0 ? "" : "+"}${figure(100 * share, 1)} %`;
}

/** What is missed once more, at the end, where it is seen. */
function targetLines(cells: readonly CellResult[]): string[] {
  const verdicts = cells.flatMap(({ cell, verdicts: own }) => own.map((verdict) => ({ cell, verdict })));
  const missed = verdicts.filter(({ verdict }) => !verdict.isMet);
  const told = cells.flatMap(({ disturbed }) => disturbed ?? []);
  const toldMissed = told.filter(({ isMet }) => !isMet);
  return [
    `Targets of the table: ${verdicts.length - missed.length} of ${verdicts.length} met`,
    ...missed.map(({ cell, verdict }) => `  ${cell.name}, ${cell.fleet}: ${verdictText(verdict)}`),
    `Told wrong, still ahead: ${told.length - toldMissed.length} of ${told.length}`,
  ];
}
