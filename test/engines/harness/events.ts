/** Data of each event of a stream: JSON as value, anything else (`[DONE]`) as text. Comments are left out. */
export function eventsOf(stream: string): unknown[] {
  return stream
    .split(/\r?\n/)
    .filter((line) => line.startsWith("data:"))
    .map((line) => dataValue(line.slice("data:".length).trim()));
}

function dataValue(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return data;
  }
}

/** An event of a chat stream, as far as these tests read it. */
export interface ChatEvent {
  readonly choices: readonly {
    readonly delta: { readonly role?: string; readonly content?: string | null };
    readonly finish_reason: string | null;
  }[];
  readonly usage?: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly prompt_tokens_details?: { readonly cached_tokens?: number };
  };
  readonly error?: unknown;
}

/** The events of a chat stream without its end mark. */
export function chatEventsOf(stream: string): ChatEvent[] {
  return eventsOf(stream).filter((event): event is ChatEvent => typeof event === "object");
}

/** The text of a chat stream. */
export function chatTextOf(stream: string): string {
  return chatEventsOf(stream)
    .map((event) => event.choices?.[0]?.delta.content ?? "")
    .join("");
}
