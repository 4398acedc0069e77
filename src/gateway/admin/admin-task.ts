import type { GatewayParts } from "../gateway-parts.ts";
import type { AdminAnswer } from "./admin-answer.ts";

/**
 * Answers from what one balancer has.
 * @param names What the path has in the places of `{…}`, in order.
 * @param body The JSON that came along; undefined: the task reads none.
 */
export type AdminHandler = (
  parts: GatewayParts,
  names: readonly string[],
  body: unknown,
) => AdminAnswer | Promise<AdminAnswer>;

/** One answer made of those that several balancers gave to the same request; there is at least one. */
export type Together = (answers: readonly [AdminAnswer, ...AdminAnswer[]]) => AdminAnswer;

/** What can be asked of the admin listener by one path and method. */
export interface AdminTask {
  readonly answer: AdminHandler;
  readonly scope: AdminScope;
  /** Largest body it reads, as JSON; undefined: it reads none. */
  readonly maxBodyBytes?: number;
}

/** How several processes that serve one configuration answer as one. Where there is one process, it does not matter. */
export type AdminScope =
  /** Any of them answers. */
  | { readonly kind: "any" }
  /** Each answers, and `together` makes one answer of theirs. */
  | { readonly kind: "all"; readonly together: Together }
  /**
   * It changes endpoints: one of them makes the change or refuses it. The others take on what has changed by it, and each
   * answers with what it `shows` from then on.
   */
  | { readonly kind: "change"; readonly shows: AdminHandler; readonly together: Together }
  /** Their metrics are added up before they are written as text. */
  | { readonly kind: "metrics" }
  /** It is about the configuration, which is read in one place for all. */
  | { readonly kind: "reload" };

/**
 * Whom a path is for. `orchestrators` have no key. `monitors` have one if there are any, and reach the listener by
 * whatever name it has. What is for `operators` is kept from pages in their browsers, too.
 */
export type Audience = "orchestrators" | "monitors" | "operators";
