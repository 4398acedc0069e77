import { type Random, seededRandom } from "../../core/index.ts";
import { BLOCK_TOKENS } from "../engine-profiles.ts";
import { arrivalTimes, type Gaps, gammaGaps, weibullGaps } from "./gaps.ts";
import { TokenCounts } from "./token-counts.ts";
import { TraceRow, type TraceSource, traceLines } from "./trace-text.ts";
import type { Arrival, Workload } from "./workload.ts";
import { shown, WorkloadError } from "./workload-error.ts";

/** Which time of the profiles to draw requests from. */
export interface ServeGenOptions {
  readonly name: string;
  /** Start of the time to draw, in seconds of the profiles; default 0. */
  readonly startS?: number | undefined;
  /** How long from there; default: one window of the profiles. */
  readonly durationS?: number | undefined;
  readonly seed?: number | undefined;
}

/** As published: rates and gaps hold for ten minutes each. */
const WINDOW_S = 600;

/**
 * Draws requests from ServeGen's client profiles. Every client is a tenant. In each window its gaps have the
 * published shape and a mean of 1/rate: the published scale measures gaps within bursts, and would send too much
 * for a client that is active in a part of the window only.
 */
export function readServeGen(source: TraceSource, options: ServeGenOptions): Workload {
  const { name, startS = 0, durationS = WINDOW_S, seed = 1 } = options;
  const random = seededRandom(seed);
  const arrivals: Arrival[] = [];
  let profiledS = 0;
  for (const line of traceLines(source)) {
    const client = new Client(TraceRow.ofLine(line));
    client.drawInto(arrivals, startS, startS + durationS, random);
    profiledS = Math.max(profiledS, client.endS);
  }
  if (startS + durationS > profiledS) {
    throw new WorkloadError(`${startS} s to ${startS + durationS} s wanted, but the profiles end at ${profiledS} s`);
  }
  arrivals.sort((a, b) => a.atMs - b.atMs);
  return { name, blockTokens: BLOCK_TOKENS, arrivals };
}

/** Ten minutes of a client. */
interface Window {
  readonly startS: number;
  /** Requests per second. */
  readonly rate: number;
  /** Undefined: it sends nothing. */
  readonly gaps: Gaps | undefined;
}

/** Lengths of a client's requests for some hours. */
interface Lengths {
  readonly prompt: TokenCounts;
  readonly output: TokenCounts;
}

class Client {
  readonly #row: TraceRow;
  readonly #tenant: string;
  readonly #windows: readonly Window[];
  /** Keys of `dataset`, each the second its lengths hold from; latest first. */
  readonly #lengthKeys: readonly string[];
  readonly #lengths = new Map<string, Lengths>();

  constructor(row: TraceRow) {
    this.#row = row;
    this.#tenant = `client-${row.count("client")}`;
    this.#windows = row
      .texts("trace")
      .map((text, index) => windowOf(text, (message) => row.error(`trace[${index}]: ${message}`)));
    this.#lengthKeys = [...row.row("dataset").keys()].sort((a, b) => Number(b) - Number(a));
  }

  get endS(): number {
    return (this.#windows.at(-1)?.startS ?? -WINDOW_S) + WINDOW_S;
  }

  /** Appends what it sends in [startS, endS), its time 0 at `startS`. */
  drawInto(arrivals: Arrival[], startS: number, endS: number, random: Random): void {
    for (const { startS: windowS, rate, gaps } of this.#windows) {
      const fromS = Math.max(startS, windowS);
      const toS = Math.min(endS, windowS + WINDOW_S);
      if (fromS >= toS || gaps === undefined) continue;
      const { prompt, output } = this.#lengthsAt(windowS);
      for (const atS of arrivalTimes(gaps, rate, fromS, toS, random)) {
        arrivals.push({
          atMs: (atS - startS) * 1000,
          request: {
            promptTokens: prompt.draw(random),
            outputTokens: output.draw(random),
            blockIds: [],
            sessionKey: undefined,
            tenant: this.#tenant,
            next: undefined,
          },
        });
      }
    }
  }

  /** Read when first needed: most of a file's lengths are of other hours. */
  #lengthsAt(windowS: number): Lengths {
    const key = this.#lengthKeys.find((startS) => Number(startS) <= windowS);
    if (key === undefined) throw this.#row.error(`dataset: expected lengths for ${windowS} s`);
    const known = this.#lengths.get(key);
    if (known !== undefined) return known;
    const row = this.#row.row("dataset").row(key);
    const countsOf = (field: string) =>
      TokenCounts.parse(row.text(field), (message) => row.error(`${field}: ${message}`));
    const lengths = { prompt: countsOf("input_tokens"), output: countsOf("output_tokens") };
    this.#lengths.set(key, lengths);
    return lengths;
  }
}

/** A row of a client's CSV. @throws what `error` makes of a message. */
function windowOf(text: string, error: (message: string) => WorkloadError): Window {
  const [startS = "", rate = "", , pattern = "", shape = ""] = text.trim().split(",");
  const window = { startS: Number(startS), rate: Number(rate), gaps: gapsOf(pattern, Number(shape)) };
  const isSilent = window.rate === 0;
  if (startS === "" || !(window.startS >= 0) || !(window.rate >= 0) || (window.gaps === undefined && !isSilent)) {
    throw error(`expected START,RATE,CV,Gamma or Weibull,SHAPE,SCALE, got ${shown(text.trim())}`);
  }
  return isSilent ? { ...window, gaps: undefined } : window;
}

function gapsOf(pattern: string, shape: number): Gaps | undefined {
  if (!(shape > 0)) return undefined;
  if (pattern === "Gamma") return gammaGaps(shape);
  return pattern === "Weibull" ? weibullGaps(shape) : undefined;
}
