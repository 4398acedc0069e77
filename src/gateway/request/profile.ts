import { fixedOutput, type RequestProfile } from "../../core/index.ts";
import type { ModelTarget } from "../../runtime/index.ts";
import type { Route } from "../routes.ts";
import { countPromptTokens } from "./prompt-size.ts";
import type { RequestFacts } from "./read-request.ts";
import type { Sender } from "./sender.ts";

/** What the balancer needs to know of a request, from what its body says and what was learned of its model. */
export function profileOf(
  route: Route,
  facts: RequestFacts,
  { pool, model }: ModelTarget,
  sender: Sender,
): RequestProfile {
  const { balancer } = pool;
  const { prompt, maxOutputTokens } = facts;
  const promptTokens = countPromptTokens(prompt, balancer.promptRatios.ratio(model));
  const isTextAlone = prompt.isKnown && prompt.tokenIds === 0 && prompt.mediaItems === 0;
  const key = { model, route: route.dialect, maxOutputTokens };
  const { sessionKey, tenant, priority, patienceMs } = sender;
  // Field by field: all profiles then have one shape, which is read many times as fast as one put together of others.
  return {
    model,
    route: route.dialect,
    maxOutputTokens,
    promptTokens,
    textBytes: isTextAlone ? prompt.textBytes : undefined,
    output: route.generates ? balancer.outputLengths.expect(key) : fixedOutput(0),
    isStreaming: facts.isStreaming,
    prefix: facts.hashPrefix(promptTokens, model),
    sessionKey,
    tenant,
    priority,
    patienceMs,
  };
}
