import type { Call } from "../support/text-call.ts";
import type { ChaosRecord } from "./run.ts";

/** One thing that must hold whatever happened. */
export interface Promised {
  readonly name: string;
  readonly isKept: boolean;
  /** The figures it was judged by. */
  readonly found: string;
  /** What broke it, one line each. */
  readonly cases: readonly string[];
}

/**
 * A leak keeps at least the request it belongs to, with its body and connection: some kilobytes each, so that a run of
 * tens of thousands shows it as tens of megabytes. What an idle process may gain by itself (compiled code, grown tables,
 * series of metrics for outcomes that had not been seen) is below this.
 */
const HEAP_MARGIN_BYTES = 8 * 2 ** 20;

/** Judges a run. */
export function promisesOf(record: ChaosRecord): Promised[] {
  return [
    accounted(record),
    unbegun(record),
    cleanEnds(record),
    everyEnd(record),
    leases(record),
    heap(record),
    sockets(record),
    noBugs(record),
  ];
}

function accounted({ storm, outcomes, open }: ChaosRecord): Promised {
  const counted = Object.values(outcomes).reduce((sum, count) => sum + count, 0);
  const sent = storm.calls.length + storm.unborn;
  return {
    name: "every request has exactly one outcome",
    isKept: counted === sent && open.inFlight === 0,
    found: `${sent} sent, ${storm.unborn} of them without a whole head, ${counted} counted, ${open.inFlight} in flight`,
    cases: [],
  };
}

/**
 * Requests that got nothing but the balancer's own refusal, or not even that, although no more than one endpoint had
 * failed them. Of what endpoints failed a request the balancer's log tells. Being told to come again later (429) is no
 * loss: nothing had died.
 */
function unbegun({ storm, log }: ChaosRecord): Promised {
  const failedBy = endpointsThatFailed(log);
  const lost = storm.calls.filter(isLost);
  const bySingle = lost.filter(({ id }) => (failedBy.get(id)?.size ?? 0) < 2);
  return {
    name: "no request that had not begun is lost to a single endpoint",
    isKept: bySingle.length === 0,
    found: `${bySingle.length} lost, ${lost.length - bySingle.length} failed by several endpoints`,
    cases: bySingle.map((call) => caseOf(call, [...(failedBy.get(call.id) ?? [])])),
  };
}

/** Whether nothing of an answer came, though the client waited for it. */
export function isLost({ ending, status, isOwnRefusal }: Call): boolean {
  return ending === "lost" || (ending === "refused" && isOwnRefusal && status >= 500);
}

function endpointsThatFailed(log: ChaosRecord["log"]): Map<string, Set<string>> {
  const failedBy = new Map<string, Set<string>>();
  for (const { requestId, endpoint } of log) {
    if (requestId === undefined || endpoint === undefined) continue;
    const endpoints = failedBy.get(requestId) ?? new Set();
    failedBy.set(requestId, endpoints.add(endpoint));
  }
  return failedBy;
}

function cleanEnds({ storm, calm }: ChaosRecord): Promised {
  const calls = [...calm.calls, ...storm.calls];
  const wrong = calls.filter(({ ending }) => ending === "false");
  const whole = calls.filter(({ ending }) => ending === "whole").length;
  return {
    name: "no answer ends as if it were whole and is not",
    isKept: wrong.length === 0,
    found: `${wrong.length} false, ${whole} whole and compared`,
    cases: wrong.map((call) => caseOf(call)),
  };
}

function everyEnd({ storm, calm }: ChaosRecord): Promised {
  const hung = [...calm.calls, ...storm.calls].filter(({ ending }) => ending === "hung");
  const calmFailures = calm.calls.filter(({ ending }) => ending === "refused" || ending === "lost");
  return {
    name: "every request comes to an end, and without faults to a good one",
    isKept: hung.length + calmFailures.length === 0,
    found: `${hung.length} without an end, ${calmFailures.length} of ${calm.calls.length} failed without faults`,
    cases: [...hung, ...calmFailures].map((call) => caseOf(call)),
  };
}

function leases({ open }: ChaosRecord): Promised {
  const left = Object.entries(open.leases).map(([name, value]) => `${name} ${value}`);
  return {
    name: "no lease is left and nothing is held",
    isKept: left.length === 0 && open.heldRequests === 0,
    found: `${left.length} numbers of the ledger not 0, ${open.heldRequests} held`,
    cases: left,
  };
}

function heap({ before, after, storm }: ChaosRecord): Promised {
  const grownBytes = after.heapBytes + after.externalBytes - before.heapBytes - before.externalBytes;
  const mebibytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(1);
  return {
    name: "the heap is back to its base",
    isKept: grownBytes <= HEAP_MARGIN_BYTES,
    found:
      `${mebibytes(before.heapBytes)} + ${mebibytes(before.externalBytes)} MiB before, ` +
      `${mebibytes(after.heapBytes)} + ${mebibytes(after.externalBytes)} after, ` +
      `${Math.round(grownBytes / Math.max(1, storm.calls.length))} bytes per request`,
    cases: [],
  };
}

function sockets({ before, after }: ChaosRecord): Promised {
  return {
    name: "the sockets are back to their base",
    isKept: after.sockets <= before.sockets,
    found: `${before.sockets} before, ${after.sockets} after`,
    cases: [],
  };
}

function noBugs({ outcomes, log }: ChaosRecord): Promised {
  const errors = log.filter(({ level }) => level >= 50).map(({ msg }) => msg);
  const internal = outcomes.internal_error ?? 0;
  return {
    name: "nothing goes wrong inside the balancer",
    isKept: errors.length + internal === 0,
    found: `${internal} internal errors, ${errors.length} errors logged`,
    cases: [...new Set(errors)],
  };
}

/** One line: what was asked, how it ended, and who failed it before. */
function caseOf(
  { id, question, ending, status, cause, endpoint, sentAtMs, endedAtMs }: Call,
  failedBy: readonly string[] = [],
): string {
  const form = question.isStream ? "stream" : "whole";
  const by = failedBy.length === 0 ? "" : `, failed by ${failedBy.join(", ")}`;
  const lasted = `${Math.round(endedAtMs - sentAtMs)} ms`;
  return `${id} ${question.api.name} ${form}: ${ending} ${status} ${cause} at ${endpoint ?? "no endpoint"} after ${lasted}${by}`;
}
