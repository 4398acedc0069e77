import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import type { Lease } from "../core/index.ts";
import type { Clock, ServedPool } from "../runtime/index.ts";
import type { AnswerRelay, AnswerTokens } from "./answer/answer-relay.ts";
import type { Attempt } from "./attempt.ts";
import type { ClientStream } from "./client/client-stream.ts";
import type { Failure } from "./failover/failure.ts";
import type { HeaderList } from "./headers.ts";
import type { AnswerOutcome } from "./outcome.ts";
import type { OutboundBody } from "./request/outbound-body.ts";
import type { Route } from "./routes.ts";
import type { Upstream } from "./upstream/upstream.ts";
import type { Watchdog } from "./watchdog.ts";

/** What an attempt needs to know of its request; the same for all attempts of one request. */
export interface AttemptRequest {
  readonly route: Route;
  readonly method: Dispatcher.HttpMethod;
  /** With its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly clientAddress: string | undefined;
  readonly requestId: string;
  readonly body: OutboundBody;
  /** Whether doing it twice is the same as once (RFC 9110, 9.2.2), as it is for every kind of inference. */
  readonly isRepeatable: boolean;
  readonly client: ClientStream;
  /** What is left of the caller's limits, as headers; empty: it has none. */
  readonly limits: HeaderList;
}

/** Where the attempt goes, and what it is watched by. */
export interface AttemptPlace {
  readonly pool: ServedPool;
  readonly lease: Lease;
  /** By which policy it was chosen. */
  readonly policy: string;
  /** How long the request was held before it was sent; undefined: it was not. */
  readonly heldMs: number | undefined;
  readonly upstream: Upstream;
  readonly watchdog: Watchdog;
  readonly clock: Clock;
  /** To an answer's head or, of a stream that generates, its first token. */
  readonly firstByteMs: number | undefined;
  readonly idleMs: number | undefined;
  /** How long the head of a stream may wait for its first event; undefined: it goes out at once. */
  readonly guardMs: number | undefined;
  /** Its number among the attempts of its request, from 1, which the endpoint is told; undefined: there is only one. */
  readonly number: number | undefined;
}

/** Who runs an attempt, and perhaps another of the same request beside it. */
export interface AttemptHost {
  /** It is about to send the client the first byte of an answer. */
  opens(attempt: Attempt): void;
  /** An answer has come that is a failure, and the client has not seen it: whether another endpoint will be asked instead. */
  mayMove(attempt: Attempt, failure: Failure): boolean;
  /** It is over, once. */
  ended(attempt: Attempt, end: AttemptEnd): void;
}

/** How an attempt ended. */
export type AttemptEnd =
  /** The client has its answer, or as much of it as there was. */
  | { readonly kind: "answered"; readonly outcome: AnswerOutcome; readonly tokens: AnswerTokens }
  | FailedAttempt
  /** The request took longer than any may, and nothing has reached the client. */
  | { readonly kind: "timed_out" }
  /** Nobody wants its answer any more. */
  | { readonly kind: "outrun" }
  | { readonly kind: "client_closed"; readonly tokens: AnswerTokens };

/** Nothing of an answer has reached the client: another endpoint may be tried. */
export interface FailedAttempt {
  readonly kind: "failed";
  readonly failure: Failure;
  readonly cause: string;
  /** What the endpoint answered, in case none does better; undefined: nothing, or not to its end. */
  readonly answer: AnswerRelay | undefined;
  /** It had begun a stream well, so that only the guard kept it from the client. */
  readonly wasGuarded: boolean;
}
