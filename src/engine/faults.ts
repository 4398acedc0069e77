import { z } from "zod";

/** The kinds of fault. docs/engine.md says what each does. */
export const FAULT_KINDS = [
  "status",
  "hold",
  "stall",
  "reset",
  "fin",
  "error",
  "freeze",
  "refuse-stream-options",
  "health",
] as const;

type FaultKind = (typeof FAULT_KINDS)[number];

/** Bounds of the value, for the kinds that have one: a status, or milliseconds. */
const VALUES: Partial<Record<FaultKind, { readonly min: number; readonly max: number }>> = {
  status: { min: 400, max: 599 },
  freeze: { min: 1, max: 3_600_000 },
  health: { min: 200, max: 599 },
};

/** One scripted misbehaviour. */
export interface Fault {
  readonly kind: FaultKind;
  /** Status or milliseconds; 0 where the kind has none. */
  readonly value: number;
  /** Requests it strikes; Infinity: all. */
  readonly count: number;
  /** Events of a stream that pass first. An answer in one piece has none: the fault comes in its place. */
  readonly after: number;
  /** Seconds in the `retry-after` header of a `status` fault; undefined: no header. */
  readonly retryAfter: number | undefined;
}

/** Parses `kind[=value][,count=N][,after=N][,retry-after=S]`; a text says what is wrong with it. */
export function parseFault(spec: string): Fault | string {
  const [first = "", ...modifiers] = spec.split(",");
  const [name = "", value] = first.split("=", 2);
  const kind = FAULT_KINDS.find((known) => known === name);
  if (kind === undefined) return `unknown fault "${name}"; known: ${FAULT_KINDS.join(", ")}`;
  const bounds = VALUES[kind];
  if (bounds === undefined && value !== undefined) return `fault "${kind}" takes no value`;
  if (bounds !== undefined && !isWithin(value, bounds.min, bounds.max)) {
    return `fault "${kind}" needs a value from ${bounds.min} to ${bounds.max}`;
  }
  const limits: Record<string, number | undefined> = { count: undefined, after: undefined, "retry-after": undefined };
  for (const modifier of modifiers) {
    const [part = "", number] = modifier.split("=", 2);
    if (!Object.hasOwn(limits, part)) return `unknown part "${part}"; known: ${Object.keys(limits).join(", ")}`;
    if (!isWithin(number, 0, Number.MAX_SAFE_INTEGER)) return `"${part}" needs a whole number`;
    limits[part] = Number(number);
  }
  return {
    kind,
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
