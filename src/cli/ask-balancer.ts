import type { ExplainAnswer, ExplainQuestion } from "../gateway/index.ts";

/** Asks a running balancer over its admin API. @returns a sentence when no answer came. */
export async function askBalancer(admin: string, question: ExplainQuestion): Promise<ExplainAnswer | string> {
  if (!URL.canParse("/admin/explain", admin)) return `--admin expects a URL such as http://127.0.0.1:9090`;
  const url = new URL("/admin/explain", admin);
  const body = parseJson(question.body.toString());
  if (body === undefined) return "the body of the request is not JSON";
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...question, body }),
    });
    const answer = parseJson(await response.text());
    if (response.ok && isObject(answer)) return answer as unknown as ExplainAnswer;
    return isObject(answer) && typeof answer.error === "string" ? answer.error : `${url} answered ${response.status}`;
  } catch (error) {
    const { cause } = error as { readonly cause?: { readonly code?: string } };
    return `no balancer answers on ${url.origin}${cause?.code === undefined ? "" : ` (${cause.code})`}`;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
