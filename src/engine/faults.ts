import { z } from "zod";

/** What each kind of fault does; the documentation lists the same. */
const KINDS = {
  /** Answers with this status. */
  status: { value: { min: 400, max: 599 } },
  /** Takes the request and never answers. */
  hold: {},
  /** Answers the head and `after` events, then falls silent. */
  stall: {},
  /** Resets the connection (RST) after `after` events. */
  reset: {},
  /** Closes the connection (FIN) after `after` events, in the middle of the body. */
  fin: {},
  /** Sends an error event after `after` events and then ends well, as vLLM does when its engine dies. */
  error: {},
  /** Stops the whole engine for this many milliseconds after `after` events of this request. */
  freeze: { value: { min: 1, max: 3_600_000 } },
  /** Answers 400 where the request has `stream_options`. */
  "refuse-stream-options": {},
  /** Answers `GET /health` with this status. */
  health: { value: { min: 200, max: 599 } },
} as const satisfies Record<string, { readonly value?: { readonly min: number; readonly max: number } }>;

export type FaultKind = keyof typeof KINDS;

/** One scripted misbehaviour. */
export interface Fault {
  readonly kind: FaultKind;
  /** Status or milliseconds; 0 where the kind has none. */
  readonly value: number;
  /** Requests it strikes; Infinity: all. */
  readonly count: number;
  /** Events of a stream that pass first. An answer in one piece counts as the first event. */
  readonly after: number;
  /** Seconds in the `retry-after` header of a `status` fault; undefined: no header. */
  readonly retryAfter: number | undefined;
}

/** Parses `kind[=value][,count=N][,after=N][,retry-after=S]`; a text says what is wrong with it. */
export function parseFault(spec: string): Fault | string {
  const [first = "", ...modifiers] = spec.split(",");
  const [kind = "", value] = first.split("=", 2);
  if (!Object.hasOwn(KINDS, kind)) return `unknown fault "${kind}"; known: ${Object.keys(KINDS).join(", ")}`;
  const rule: { readonly value?: { readonly min: number; readonly max: number } } = KINDS[kind as FaultKind];
  if (rule.value === undefined && value !== undefined) return `fault "${kind}" takes no value`;
  if (rule.value !== undefined && !isWithin(value, rule.value.min, rule.value.max)) {
    return `fault "${kind}" needs a value from ${rule.value.min} to ${rule.value.max}`;
  }
  const limits: Record<string, number | undefined> = { count: undefined, after: undefined, "retry-after": undefined };
  for (const modifier of modifiers) {
    const [name = "", number] = modifier.split("=", 2);
    if (!Object.hasOwn(limits, name)) return `unknown part "${name}"; known: ${Object.keys(limits).join(", ")}`;
    if (!isWithin(number, 0, Number.MAX_SAFE_INTEGER)) return `"${name}" needs a whole number`;
    limits[name] = Number(number);
  }
  return {
    kind: kind as FaultKind,
    value: Number(value ?? 0),
    count: limits.count ?? Number.POSITIVE_INFINITY,
    after: limits.after ?? 0,
    retryAfter: limits["retry-after"],
  };
}

function isWithin(text: string | undefined, min: number, max: number): boolean {
  return text !== undefined && /^\d+$/.test(text) && Number(text) >= min && Number(text) <= max;
}

/** A fault specification as an option. */
export const faultSpec: z.ZodType<Fault, string> = z.string().transform((spec, context) => {
  const fault = parseFault(spec);
  if (typeof fault !== "string") return fault;
  context.addIssue(fault);
  return z.NEVER;
});

/** The faults still to come. Each request is struck by at most one: the first that has strikes left and fits. */
export class FaultScript {
  #pending: { readonly fault: Fault; left: number }[] = [];

  constructor(faults: readonly Fault[]) {
    this.replace(faults);
  }

  replace(faults: readonly Fault[]): void {
    this.#pending = faults.map((fault) => ({ fault, left: fault.count }));
  }

  /** The fault of the next inference request; undefined: it is served well. */
  strike(hasStreamOptions: boolean): Fault | undefined {
    return this.#take(({ kind }) => kind !== "health" && (kind !== "refuse-stream-options" || hasStreamOptions));
  }

  /** Status of the next health probe; undefined: healthy. */
  healthStatus(): number | undefined {
    return this.#take(({ kind }) => kind === "health")?.value;
  }

  #take(fits: (fault: Fault) => boolean): Fault | undefined {
    const entry = this.#pending.find(({ fault, left }) => left > 0 && fits(fault));
    if (entry === undefined) return undefined;
    entry.left--;
    return entry.fault;
  }
}
