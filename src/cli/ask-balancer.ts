import type { ExplainAnswer, ExplainQuestion } from "../gateway/index.ts";
import { callAdmin, parseJson } from "./call-admin.ts";
import type { Terminal } from "./terminal.ts";

/** Asks a running balancer over its admin API. @returns a sentence when no answer came. */
export async function askBalancer(
  admin: string,
  question: ExplainQuestion,
  terminal: Pick<Terminal, "environment">,
): Promise<ExplainAnswer | string> {
  const body = parseJson(question.body.toString());
  if (body === undefined) return "the body of the request is not JSON";
  return await callAdmin<ExplainAnswer>(
    { admin, method: "POST", path: "/admin/explain", body: { ...question, body } },
    terminal,
  );
}
