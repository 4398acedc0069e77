/** A refusal, in vLLM's terms. It is returned as a value: asking for something wrong is an expected outcome. */
export class Failure {
  readonly status: number;
  readonly type: string;
  readonly message: string;

  constructor(status: number, type: string, message: string) {
    this.status = status;
    this.type = type;
    this.message = message;
  }

  /** vLLM's body: nested, and `code` is the status as a number. */
  toOpenAi(): object {
    return { error: { message: this.message, type: this.type, param: null, code: this.status } };
  }

  toAnthropic(): object {
    return { type: "error", error: { type: ANTHROPIC_TYPES[this.status] ?? "api_error", message: this.message } };
  }
}

const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  429: "rate_limit_error",
  503: "overloaded_error",
  529: "overloaded_error",
};

export function badRequest(message: string): Failure {
  return new Failure(400, "BadRequestError", message);
}

export function notFound(message: string): Failure {
  return new Failure(404, "NotFoundError", message);
}

export function engineDead(): Failure {
  return new Failure(500, "InternalServerError", "The engine died while it was serving this request.");
}

/** What a scripted status answers with. */
export function scriptedFailure(status: number): Failure {
  if (status === 503 || status === 429) return new Failure(status, "Service Unavailable", "The queue is full.");
  return new Failure(status, status < 500 ? "BadRequestError" : "InternalServerError", "Scripted fault.");
}
