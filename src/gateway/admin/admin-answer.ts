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

/** Whether it is what was asked for. */
export function isGood({ status }: AdminAnswer): boolean {
  return status < 400;
}

/** Every problem with where it is, what was found and what was expected. */
export function invalid(error: string, problems: readonly Problem[]): AdminAnswer {
  return refusal(400, `${error}: ${problems.map(formatProblem).join("; ")}`, {
    problems: problems.map(({ path, source, found, expected }) => ({ path, source, found, expected })),
  });
}
