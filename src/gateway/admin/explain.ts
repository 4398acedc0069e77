import type { Explanation, RequestProfile } from "../../core/index.ts";
import type { Runtime } from "../../runtime/index.ts";
import { type Access, ANYBODY } from "../access/access.ts";
import { profileOf } from "../request/profile.ts";
import { readRequest } from "../request/read-request.ts";
import { clientPartOf, type SenderReaders, senderOf } from "../request/sender.ts";
import { findRoute } from "../routes.ts";

/** A request whose decision is asked for. */
export interface ExplainQuestion {
  /** Path of the request; it decides how the body is read. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** What would be chosen for a request, and what for. */
export interface ExplainAnswer {
  readonly pool: string;
  /** The name the endpoints know. */
  readonly model: string;
  readonly profile: {
    readonly promptTokens: number;
    readonly expectedOutputTokens: number;
    readonly isStreaming: boolean;
    /** As the client wrote it. */
    readonly sessionKey: string | undefined;
    readonly tenant: string | undefined;
    readonly priority: RequestProfile["priority"];
  };
  readonly policy: string;
  readonly reason: string;
  /** Undefined: the request would be refused. */
  readonly chosen: string | undefined;
  /** It would be held for that endpoint, not sent at once. */
  readonly wouldHold: boolean;
  readonly considered: readonly (Explanation["considered"][number] & { readonly cachedTokens: number })[];
  readonly excluded: Explanation["excluded"];
}

/** Whom an explanation asks. */
export interface Explaining {
  readonly runtime: Runtime;
  readonly senders: SenderReaders;
  readonly access: Access;
}

/**
 * Answers what a request would be told now, and changes nothing. Whose request it is follows from its headers; without a
 * key in them it is anybody's. @returns a sentence when it cannot be read.
 */
export function explainRequest(
  { runtime, senders, access }: Explaining,
  { path, headers, body }: ExplainQuestion,
): ExplainAnswer | string {
  const route = findRoute(path);
  if (route === undefined || route.dialect === "passthrough") return `${path} is not a balanced path`;
  const facts = readRequest(route.dialect, body);
  if (!facts.isReadable) return facts.message;
  const target = runtime.directory.find(facts.model);
  if (target === undefined) {
    return `the model ${JSON.stringify(facts.model)} is not served; known: ${runtime.directory.names.join(", ") || "none"}`;
  }
  // `admit` takes the credentials out of the headers that it is given.
  const caller = access.admit({ ...headers }) ?? ANYBODY;
  const profile = profileOf(route, facts, target, senderOf(headers, facts.body, senders, caller).sender);
  const { balancer } = target.pool;
  const { chosen, wouldHold, explanation } = balancer.explain(profile, runtime.clock.nowMs(), body.length);
  const cached = new Map(balancer.members.map((member) => [member.endpoint.id, member.cachedTokens(profile)]));
  return {
    pool: target.pool.name,
    model: target.model,
    profile: {
      promptTokens: profile.promptTokens,
      expectedOutputTokens: profile.output.meanTokens,
      isStreaming: profile.isStreaming,
      sessionKey: profile.sessionKey && clientPartOf(profile.sessionKey),
      tenant: profile.tenant,
      priority: profile.priority,
    },
    policy: explanation.policy,
    reason: explanation.reason,
    chosen: chosen?.id,
    wouldHold,
    considered: explanation.considered.map((one) => ({ ...one, cachedTokens: cached.get(one.endpoint) ?? 0 })),
    excluded: explanation.excluded,
  };
}
