import type { CacheEvent, EndpointShare, HeldShare, SharedWork, SpeedSample } from "../../core/index.ts";
import type { NumberReader, NumberWriter } from "./number-list.ts";

/** What of one pool's work is not numbers, in JSON. */
export interface WorkHead {
  readonly name: string;
  readonly sequence: number;
  readonly isWhole: boolean;
  readonly isPrompt: boolean;
  /** Of the endpoints that are told of, then of others that events name. */
  readonly ids: readonly string[];
  /** How many are told of. */
  readonly endpoints: number;
  readonly events: number;
}

/** Writes the numbers of `work` to `out`; returns the rest. */
export function writeWork(
  name: string,
  { sequence, isWhole, isPrompt, endpoints, cache }: SharedWork,
  out: NumberWriter,
): WorkHead {
  const ids = Object.keys(endpoints);
  for (const id of ids) writeShare(endpoints[id] as EndpointShare, out);
  const head = { name, sequence, isWhole, isPrompt, ids, endpoints: ids.length, events: cache.length };
  if (cache.length === 0) return head;
  const places = new Map(ids.map((id, place) => [id, place]));
  const placeOf = (id: string): number => {
    const place = places.get(id) ?? ids.push(id) - 1;
    places.set(id, place);
    return place;
  };
  for (const event of cache) writeEvent(event, placeOf, out);
  return head;
}

/** @throws RangeError when the numbers are not those of `head`. */
export function readWork(
  { sequence, isWhole, isPrompt, ids, endpoints, events }: WorkHead,
  numbers: NumberReader,
): SharedWork {
  const shares: Record<string, EndpointShare> = Object.create(null);
  for (const id of ids.slice(0, endpoints)) shares[id] = readShare(numbers);
  const cache: CacheEvent[] = [];
  for (let i = 0; i < events; i++) cache.push(readEvent(ids, numbers));
  return { sequence, isWhole, isPrompt, endpoints: shares, cache };
}

function writeShare({ account, held, done, samples }: EndpointShare, out: NumberWriter): void {
  out.push(account.requests);
  out.push(account.waitingRequests);
  out.push(account.waitingPrefillTokens);
  out.push(account.waitingPrefillPairs);
  out.push(account.waitingPromptTokens);
  out.push(account.runningRequests);
  out.push(account.contextTokens);
  out.push(account.outputTokens);
  out.push(account.recentPrefillTokens);
  out.push(account.recentPrefillPairs);
  out.push(account.prefillMovedAgoMs ?? ABSENT);
  out.push(held.requests);
  out.push(held.prefillTokens);
  out.push(held.prefillPairs);
  out.push(held.first?.urgency ?? ABSENT);
  out.push(held.first?.keyAgoMs ?? ABSENT);
  out.push(done.tokens);
  out.push(done.pairs);
  out.push(done.steps);
  out.push(samples.length);
  for (const sample of samples) writeSample(sample, out);
}

function readShare(numbers: NumberReader): EndpointShare {
  return {
    account: {
      requests: numbers.next(),
      waitingRequests: numbers.next(),
      waitingPrefillTokens: numbers.next(),
      waitingPrefillPairs: numbers.next(),
      waitingPromptTokens: numbers.next(),
      runningRequests: numbers.next(),
      contextTokens: numbers.next(),
      outputTokens: numbers.next(),
      recentPrefillTokens: numbers.next(),
      recentPrefillPairs: numbers.next(),
      prefillMovedAgoMs: present(numbers.next()),
    },
    held: readHeld(numbers),
    done: { tokens: numbers.next(), pairs: numbers.next(), steps: numbers.next() },
    samples: readSamples(numbers),
  };
}

function readHeld(numbers: NumberReader): HeldShare {
  const held = { requests: numbers.next(), prefillTokens: numbers.next(), prefillPairs: numbers.next() };
  const urgency = present(numbers.next());
  const keyAgoMs = numbers.next();
  return urgency === undefined ? held : { ...held, first: { urgency, keyAgoMs } };
}

function writeSample({ scale, work, ms, noise }: SpeedSample, out: NumberWriter): void {
  out.push(scale === "decode" ? DECODE : PREFILL);
  out.push(ms);
  out.push(noise);
  out.push(work.mainMs);
  out.push(work.otherMs.length);
  for (const otherMs of work.otherMs) out.push(otherMs);
}

function readSamples(numbers: NumberReader): SpeedSample[] {
  const samples: SpeedSample[] = [];
  for (let left = numbers.next(); left > 0; left--) samples.push(readSample(numbers));
  return samples;
}

function readSample(numbers: NumberReader): SpeedSample {
  const scale = numbers.next() === DECODE ? "decode" : "prefill";
  const ms = numbers.next();
  const noise = numbers.next();
  return { scale, ms, noise, work: { mainMs: numbers.next(), otherMs: numbers.take(numbers.next()) } };
}

function writeEvent(event: CacheEvent, placeOf: (endpointId: string) => number, out: NumberWriter): void {
  if (event.kind === "ended") {
    out.push(event.isComputed ? ENDED_COMPUTED : ENDED);
    out.push(event.request);
    out.push(event.generatedTokens);
    return;
  }
  const { request, endpointId, prefix, promptTokens } = event;
  out.push(SENT);
  out.push(request);
  out.push(placeOf(endpointId));
  out.push(promptTokens);
  out.push(prefix?.tokensPerBlock ?? ABSENT);
  if (prefix === undefined) return;
  out.push(prefix.hashes.length);
  for (const hash of prefix.hashes) out.push(hash);
}

function readEvent(ids: readonly string[], numbers: NumberReader): CacheEvent {
  const tag = numbers.next();
  const request = numbers.next();
  if (tag !== SENT) {
    if (tag !== ENDED && tag !== ENDED_COMPUTED) throw new RangeError(`no such event: ${tag}`);
    return { kind: "ended", request, generatedTokens: numbers.next(), isComputed: tag === ENDED_COMPUTED };
  }
  const endpointId = ids[numbers.next()];
  if (endpointId === undefined) throw new RangeError("an event of an endpoint without a name");
  const promptTokens = numbers.next();
  const tokensPerBlock = present(numbers.next());
  const prefix = tokensPerBlock === undefined ? undefined : { hashes: numbers.take(numbers.next()), tokensPerBlock };
  return { kind: "sent", request, endpointId, prefix, promptTokens };
}

function present(value: number): number | undefined {
  return Number.isNaN(value) ? undefined : value;
}

/** In place of a number that there is not. */
const ABSENT = Number.NaN;

/** Kinds of work. */
const DECODE = 0;
const PREFILL = 1;

/** Kinds of events. */
const SENT = 0;
const ENDED = 1;
const ENDED_COMPUTED = 2;
