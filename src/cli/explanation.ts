import { findPolicy } from "../core/index.ts";
import type { ExplainAnswer } from "../gateway/index.ts";
import { formatTable } from "./report.ts";

/** An explanation as people read it: the request, the candidates, who was left out, and the verdict. */
export function formatExplanation(answer: ExplainAnswer): string {
  const { pool, model, profile, policy, chosen, wouldHold, reason } = answer;
  const session = profile.sessionKey === undefined ? "no session" : `session ${profile.sessionKey}`;
  const tenant = profile.tenant === undefined ? "" : `, tenant ${profile.tenant}`;
  const priority = profile.priority === "normal" ? "" : `, ${profile.priority} priority`;
  const verdict = chosen === undefined ? "no endpoint" : chosen;
  return [
    `model    ${model || "(none named)"}, pool ${pool}\n`,
    `request  ${profile.promptTokens} prompt tokens, ${Math.round(profile.expectedOutputTokens)} output tokens expected, `,
    `${profile.isStreaming ? "streamed" : "not streamed"}, ${session}${tenant}${priority}\n`,
    `policy   ${policy}; score: ${findPolicy(policy).score}\n\n`,
    answer.considered.length > 0 ? candidateTable(answer) : "",
    ...answer.excluded.map(({ endpoint, why }) => `  ${endpoint} is no candidate: ${why.replaceAll("_", " ")}\n`),
    `\n${verdict}: ${reason}\n`,
    wouldHold ? `would be held for ${verdict} until it can begin\n` : "",
  ].join("");
}

function candidateTable({ considered, chosen }: ExplainAnswer): string {
  const terms = [...new Set(considered.flatMap((candidate) => Object.keys(candidate.terms ?? {})))];
  const rows = considered.map(({ endpoint, score, cachedTokens, terms: values }) => [
    `${endpoint === chosen ? ">" : " "} ${endpoint}`,
    figure(score),
    ...terms.map((term) => (values?.[term] === undefined ? "" : figure(values[term]))),
    String(Math.round(cachedTokens)),
  ]);
  return formatTable(["  endpoint", "score", ...terms, "cached tokens"], rows);
}

/** Four significant digits tell candidates apart. */
function figure(value: number): string {
  return String(Number(value.toPrecision(4)));
}
