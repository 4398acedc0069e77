import type { TestGateway } from "./test-gateway.ts";

/** An answer of the admin listener. */
export interface AdminAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly json: unknown;
}

/** Calls the admin listener; `body` is sent as JSON, a text as it is. */
export async function callAdmin(
  { admin }: Pick<TestGateway, "admin">,
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<AdminAnswer> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const sent = body === undefined ? {} : { body: text };
  const type = { "content-type": "application/json" };
  const response = await fetch(`${admin}${path}`, { method, headers: { ...type, ...headers }, ...sent });
  const answer = await response.text();
  return { status: response.status, headers: response.headers, json: answer === "" ? undefined : JSON.parse(answer) };
}

/** Path of an endpoint of the pool `default`. */
export function endpointPath(id: string): string {
  return `/admin/pools/default/endpoints/${encodeURIComponent(id)}`;
}
