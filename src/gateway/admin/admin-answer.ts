import type { IncomingMessage } from "node:http";
import { formatProblem, type Problem } from "../../runtime/index.ts";

/** A whole answer of the admin listener. */
export interface AdminAnswer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export function json(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): AdminAnswer {
  return { status, type: "application/json", body: `${JSON.stringify(value, null, 2)}\n`, headers };
}

/** What is wrong, in a sentence; `details` are for programs. */
export function refusal(status: number, error: string, details: object = {}): AdminAnswer {
  return json(status, { error, ...details });
}

/** Every problem with where it is, what was found and what was expected. */
export function invalid(error: string, problems: readonly Problem[]): AdminAnswer {
  return refusal(400, `${error}: ${problems.map(formatProblem).join("; ")}`, {
    problems: problems.map(({ path, source, found, expected }) => ({ path, source, found, expected })),
  });
}

/** The JSON that a request brought, or the answer to one that brought something else. */
export type ReceivedJson =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly answer: AdminAnswer };

export async function readJson(request: IncomingMessage, maxBytes: number): Promise<ReceivedJson> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) return { ok: false, answer: refusal(413, `expected at most ${maxBytes} bytes`) };
    chunks.push(chunk);
  }
  try {
    return { ok: true, value: JSON.parse(Buffer.concat(chunks).toString()) };
  } catch {
    return { ok: false, answer: refusal(400, "expected JSON in the body of the request") };
  }
}
