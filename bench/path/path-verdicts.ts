import { OURS } from "./measures/measure.ts";
import { PEERS } from "./peers/index.ts";
import { REFERENCE } from "./report.ts";
import type { Cost, PathResult, PeerResult } from "./run.ts";
import type { Verdict } from "./verdict.ts";

/** Whom a target compares with: a peer by its name, or whichever LLM router is the cheapest. */
type Rival = typeof REFERENCE | "envoy" | "cheapest LLM router";

/** What our path may cost, as a multiple of a rival's. */
interface Target {
  readonly measure: string;
  readonly cost: Cost;
  readonly rival: Rival;
  readonly most: number;
  /** Whether exactly as much is still good. */
  readonly isInclusive: boolean;
  readonly text: string;
}

const REQUEST = { measure: "CPU per request, 2 kB", cost: "cpuUsPerRequest" } as const;
const EVENT = { measure: "CPU per streamed event", cost: "cpuUsPerEvent" } as const;
const ROUTER = "cheapest LLM router";

const TARGETS: readonly Target[] = [
  { ...REQUEST, rival: REFERENCE, most: 3, isInclusive: true, text: "at most 3 x nginx" },
  { ...REQUEST, rival: "envoy", most: 1, isInclusive: false, text: "below envoy" },
  { ...REQUEST, rival: ROUTER, most: 0.5, isInclusive: true, text: "at most half of the cheapest LLM router" },
  { ...EVENT, rival: REFERENCE, most: 1.75, isInclusive: true, text: "at most 1.75 x nginx" },
  { ...EVENT, rival: "envoy", most: 1, isInclusive: true, text: "not above envoy" },
  { ...EVENT, rival: ROUTER, most: 1, isInclusive: false, text: "below every LLM router" },
];

/** Whether our path costs what it may. */
export function pathVerdicts({ peers }: Pick<PathResult, "peers">): Verdict[] {
  return TARGETS.map((target) => verdict(target, peers));
}

function verdict({ measure, cost, rival, most, isInclusive, text }: Target, peers: readonly PeerResult[]): Verdict {
  const ours = costOf(peers, OURS, cost);
  const found = rival === ROUTER ? cheapestRouter(peers, cost) : { name: rival, us: costOf(peers, rival, cost) };
  if (ours === undefined || found?.us === undefined) return { measure, target: text, measured: "-", isMet: undefined };
  const ratio = ours / found.us;
  const isWithin = isInclusive ? ratio <= most : ratio < most;
  // Against some of the routers it can be missed, but not met.
  const isDecided = rival !== ROUTER || !isWithin || hasAllRouters(peers);
  return {
    measure,
    target: text,
    measured: `${ratio.toFixed(2)} x ${found.name}`,
    isMet: isDecided ? isWithin : undefined,
  };
}

function costOf(peers: readonly PeerResult[], name: string, cost: Cost): number | undefined {
  return peers.find((peer) => peer.name === name)?.medians?.[cost];
}

function cheapestRouter(
  peers: readonly PeerResult[],
  cost: Cost,
): { readonly name: string; readonly us: number } | undefined {
  const known = peers.flatMap(({ name, isLlmRouter, medians }) =>
    isLlmRouter && medians !== undefined ? [{ name, us: medians[cost] }] : [],
  );
  return known.toSorted((a, b) => a.us - b.us)[0];
}

/** Whether every LLM router of the usual run was measured. */
function hasAllRouters(peers: readonly PeerResult[]): boolean {
  const routers = PEERS.filter(({ isLlmRouter }) => isLlmRouter);
  return routers.every(({ name }) => costOf(peers, name, "cpuUsPerRequest") !== undefined);
}
