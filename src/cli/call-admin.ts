import { parseUrl } from "../config/index.ts";
import type { Terminal } from "./terminal.ts";

/** The variable with the key of the admin listener, if it asks for one. */
const KEY_VARIABLE = "EVENKEEL_ADMIN_KEY";

/** One call of a balancer's admin API. */
export interface AdminCall {
  /** Address of the admin listener. */
  readonly admin: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly body?: unknown;
}

/** Calls a running balancer. @returns its answer, or a sentence when it refused or none came. */
export async function callAdmin<Answer extends object>(
  { admin, method, path, body }: AdminCall,
  { environment }: Pick<Terminal, "environment">,
): Promise<Answer | string> {
  const url = parseUrl(path, admin);
  if (url === undefined) return "--admin expects a URL such as http://127.0.0.1:9090";
  const key = environment[KEY_VARIABLE];
  try {
    const response = await fetch(url, {
      method,
      headers: { "content-type": "application/json", ...(key && { authorization: `Bearer ${key}` }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const answer = parseJson(await response.text());
    if (response.ok && isObject(answer)) return answer as Answer;
    if (response.status === 401) return `the balancer asks for an admin key; set ${KEY_VARIABLE}`;
    return isObject(answer) && typeof answer.error === "string" ? answer.error : `${url} answered ${response.status}`;
  } catch (error) {
    const { cause } = error as { readonly cause?: { readonly code?: string } };
    return `no balancer answers on ${url.origin}${cause?.code === undefined ? "" : ` (${cause.code})`}`;
  }
}

/** Undefined: it is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
