import { type Candidate, type Candidates, type Choice, leastBy, type Random } from "../../core/index.ts";

/** What a rule compares, by name; works as the terms of an explanation. */
export type Terms = Readonly<Record<string, number>>;

/** A candidate with the figures a rule compares, worked out once. */
export interface Weighed<Figures extends Terms> {
  readonly candidate: Candidate;
  readonly figures: Figures;
}

/** At least one. */
export type AllWeighed<Figures extends Terms> = readonly [Weighed<Figures>, ...Weighed<Figures>[]];

/** Every candidate with its figures, in the order given. */
export function weighEach<Figures extends Terms>(
  [first, ...rest]: Candidates,
  figuresOf: (candidate: Candidate) => Figures,
): AllWeighed<Figures> {
  const weigh = (candidate: Candidate): Weighed<Figures> => ({ candidate, figures: figuresOf(candidate) });
  return [weigh(first), ...rest.map(weigh)];
}

/** The one with the smallest score; ties are drawn. */
export function lowest<Figures extends Terms>(
  weighed: AllWeighed<Figures>,
  scoreOf: (figures: Figures) => number,
  random: Random,
): Weighed<Figures> {
  return leastBy(weighed, ({ figures }) => scoreOf(figures), random);
}

/** All that have the highest score. */
export function allHighest<Figures extends Terms>(
  weighed: AllWeighed<Figures>,
  scoreOf: (figures: Figures) => number,
): AllWeighed<Figures> {
  let best = Number.NEGATIVE_INFINITY;
  for (const { figures } of weighed) best = Math.max(best, scoreOf(figures));
  return some(weighed, (figures) => scoreOf(figures) === best) ?? weighed;
}

/** Those that pass; undefined: none does. */
export function some<Figures extends Terms>(
  weighed: AllWeighed<Figures>,
  passes: (figures: Figures) => boolean,
): AllWeighed<Figures> | undefined {
  const [first, ...rest] = weighed.filter(({ figures }) => passes(figures));
  return first === undefined ? undefined : [first, ...rest];
}

/** The choice of `chosen` among all that were weighed. */
export function choiceOf<Figures extends Terms>(
  chosen: Weighed<Figures>,
  weighed: AllWeighed<Figures>,
  scoreOf: (figures: Figures) => number,
  reason: string,
): Choice {
  return {
    chosen: chosen.candidate,
    considered: weighed.map(({ candidate, figures }) => ({
      endpoint: candidate.endpoint.id,
      score: scoreOf(figures),
      terms: figures,
    })),
    reason,
  };
}

/** The choice of the candidate with the smallest score. */
export function chooseLowest<Figures extends Terms>(
  weighed: AllWeighed<Figures>,
  scoreOf: (figures: Figures) => number,
  random: Random,
  reason: string,
): Choice {
  return choiceOf(lowest(weighed, scoreOf, random), weighed, scoreOf, reason);
}
