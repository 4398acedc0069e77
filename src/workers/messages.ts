import type { Config, Parcel } from "../config/index.ts";
import type { AdminAnswer, AdminAsked, MetricSnapshot } from "../gateway/index.ts";
import type { AnswerSizes, KeyUse, OperatorChanges, RecordedProfile } from "../runtime/index.ts";

/** What all workers have in common, and one that begins later begins with. */
export interface CommonState {
  readonly config: Parcel<Config>;
  readonly changes: Parcel<OperatorChanges>;
}

/** From the primary to a worker, among what concerns the exchange of work. */
export type ToWorker =
  | { readonly kind: "start"; readonly number: number; readonly state: CommonState }
  | { readonly kind: "ask"; readonly id: number; readonly question: Question }
  /** It stops accepting, lets what runs finish, and ends. */
  | { readonly kind: "drain" };

/** From a worker to the primary. */
export type FromWorker =
  /** It hears: what it was told before is lost. */
  | { readonly kind: "awake" }
  | { readonly kind: "started"; readonly listenUrl: string }
  | { readonly kind: "failed"; readonly failure: StartFailure }
  | { readonly kind: "answer"; readonly id: number; readonly answer: unknown }
  /** It could not answer; the message is for the log. */
  | { readonly kind: "unanswered"; readonly id: number; readonly message: string }
  | { readonly kind: "record"; readonly record: RemoteRecord };

/** What the primary asks a worker. */
export type Question =
  | { readonly kind: "admin"; readonly asked: AdminAsked }
  /** It is the one to make a change, or to refuse it. */
  | { readonly kind: "change"; readonly asked: AdminAsked }
  /** Another one made the change that this was. */
  | { readonly kind: "changed"; readonly asked: AdminAsked; readonly state: CommonState }
  | { readonly kind: "take"; readonly state: CommonState }
  | { readonly kind: "metrics" }
  | { readonly kind: "keysOutstanding" }
  | { readonly kind: "keysUsed"; readonly uses: ReadonlyMap<string, KeyUse> };

/** The answer to each kind of question. */
export interface Answers {
  readonly admin: AdminAnswer;
  readonly change: ChangeAnswer;
  readonly changed: AdminAnswer;
  /** What it has in common with the others by then: a reload may have taken a pool away, and what was changed there. */
  readonly take: Parcel<OperatorChanges>;
  readonly metrics: readonly MetricSnapshot[];
  readonly keysOutstanding: ReadonlyMap<string, KeyUse>;
  readonly keysUsed: undefined;
}

/** What became of a change. */
export interface ChangeAnswer {
  readonly answer: AdminAnswer;
  /** All there are by then. */
  readonly changes: Parcel<OperatorChanges>;
}

/** Why a worker cannot serve: an address that it cannot listen on, in the fields of Node's own error. */
export interface StartFailure {
  readonly message: string;
  readonly code: string;
  readonly address?: string | undefined;
  readonly port?: number | undefined;
  readonly hostname?: string | undefined;
}

/** A request that is over, as a worker has it recorded. */
export interface RemoteRecord {
  readonly request: RecordedProfile;
  /** Clocks of processes have nothing in common. */
  readonly arrivedAgoMs: number;
  readonly sizes: AnswerSizes;
}
