import fc from "fast-check";

/** Something that takes input from outside, and must bear any. */
export interface FuzzTarget {
  readonly name: string;
  /** What the inputs are, in a few words. */
  readonly inputs: string;
  open(): Promise<OpenTarget>;
}

/** A target that is ready. */
export interface OpenTarget {
  readonly arbitrary: fc.Arbitrary<unknown>;
  /** Gives the target one input. @throws when something does not hold. */
  check(input: unknown): Promise<void> | void;
  /** @throws when something is left behind. */
  close(): Promise<void>;
}

/** What came of one target. */
export interface FuzzRow {
  readonly target: string;
  readonly inputs: number;
  readonly seconds: number;
  /** Undefined: it bore all of them. */
  readonly failure: FuzzFailure | undefined;
}

export interface FuzzFailure {
  readonly message: string;
  /** The smallest input found that shows it; undefined: it is not of one input. */
  readonly input: string | undefined;
  /** With the seed it leads to the input at once: `--seed S --path P`. */
  readonly path: string | undefined;
}

/** How a target is run. */
export interface FuzzPlan {
  readonly runs: number;
  readonly seed: number;
  /** Begins with this one input; undefined: with the first. */
  readonly path: string | undefined;
  /** Called before each input. */
  readonly beat: () => void;
}

/** Longer than any time-out of what is tried here. What takes longer is stuck. */
const LONGEST_MS = 10_000;
/** Characters of an input that are shown. */
const SHOWN_UNITS = 4000;

/** Gives a target inputs until one fails or all are through; a failing one is made as small as it can be. */
export async function runTarget(target: FuzzTarget, { runs, seed, path, beat }: FuzzPlan): Promise<FuzzRow> {
  const startMs = performance.now();
  const { arbitrary, check, close } = await target.open();
  const stray = new StrayErrors();
  const property = fc.asyncProperty(arbitrary, async (input) => {
    beat();
    await inTime(async () => check(input));
    stray.assertNone();
  });
  const replay = path === undefined ? {} : { path };
  const found = await fc.check(property, { numRuns: runs, seed, ...replay });
  let failure = found.failed ? failureOf(found) : undefined;
  try {
    await close();
    stray.assertNone();
  } catch (error) {
    failure ??= { message: `at the end: ${(error as Error).message}`, input: undefined, path: undefined };
  }
  stray.stop();
  return { target: target.name, inputs: found.numRuns, seconds: (performance.now() - startMs) / 1000, failure };
}

function failureOf({ errorInstance, counterexample, counterexamplePath }: fc.RunDetails<[unknown]>): FuzzFailure {
  const message = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
  const input = fc.stringify(counterexample?.[0]).slice(0, SHOWN_UNITS);
  return { message, input, path: counterexamplePath ?? undefined };
}

async function inTime(work: () => Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${LONGEST_MS} ms`)), LONGEST_MS);
  });
  try {
    await Promise.race([work(), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Errors that nobody caught, which would have ended the process. */
class StrayErrors {
  readonly #errors: unknown[] = [];
  readonly #keep = (error: unknown): void => void this.#errors.push(error);

  constructor() {
    process.on("unhandledRejection", this.#keep);
    process.on("uncaughtException", this.#keep);
  }

  assertNone(): void {
    const [error] = this.#errors.splice(0);
    if (error !== undefined) throw new Error(`nobody caught ${error instanceof Error ? error.stack : String(error)}`);
  }

  stop(): void {
    process.off("unhandledRejection", this.#keep);
    process.off("uncaughtException", this.#keep);
  }
}
