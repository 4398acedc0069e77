/** A generating API, as a client that only wants text speaks it. */
export interface TextApi {
  readonly name: "chat" | "completions" | "messages" | "responses";
  readonly path: string;
  /** The fields that ask for at most `maxTokens` tokens after `prompt`. */
  body(prompt: string, maxTokens: number): object;
  /** What an answer in one piece says. */
  readWhole(answer: AnswerJson): TextRead;
  /** Adds to `read` what an event of a stream says. */
  readEvent(event: AnswerJson, read: TextRead): void;
}

/** What answers and events may say, whatever the API, as far as it is looked at. */
export interface AnswerJson {
  readonly type?: string;
  readonly error?: ErrorJson | null;
  readonly code?: ErrorJson["code"];
  readonly choices?: readonly ChoiceJson[];
  readonly usage?: { readonly completion_tokens?: number; readonly output_tokens?: number } | null;
  readonly content?: readonly TextJson[];
  readonly stop_reason?: string | null;
  /** Of `messages` an object, of `responses` text. */
  readonly delta?: (TextJson & { readonly stop_reason?: string }) | string;
  readonly output?: readonly { readonly content?: readonly TextJson[] }[];
  readonly status?: string;
  readonly response?: AnswerJson;
}

interface ErrorJson {
  readonly code?: string | number | null;
  readonly type?: string;
}

interface TextJson {
  readonly text?: string;
}

interface ChoiceJson extends TextJson {
  readonly index?: number;
  readonly message?: { readonly content?: string | null };
  readonly delta?: { readonly content?: string | null };
  readonly finish_reason?: string | null;
}

/** What was read of an answer so far. */
export interface TextRead {
  /** Text by choice. */
  readonly texts: string[];
  /** The engine said why it stopped, for every choice that began. */
  isFinished: boolean;
  /** The API's end mark came; an answer in one piece needs none. */
  isDone: boolean;
  /** Output tokens as the engine counted them; undefined: it did not say. */
  outputTokens: number | undefined;
  /** An error told inside the answer. */
  error: string | undefined;
}

export function nothingRead(): TextRead {
  return { texts: [], isFinished: false, isDone: false, outputTokens: undefined, error: undefined };
}

const chat: TextApi = {
  name: "chat",
  path: "/v1/chat/completions",
  body: (prompt, maxTokens) => ({ messages: [{ role: "user", content: prompt }], max_tokens: maxTokens }),
  readWhole: (answer) => readChoices(answer, nothingRead(), (choice) => choice.message?.content),
  readEvent: (event, read) => void readChoices(event, read, (choice) => choice.delta?.content),
};

const completions: TextApi = {
  name: "completions",
  path: "/v1/completions",
  body: (prompt, maxTokens) => ({ prompt, max_tokens: maxTokens }),
  readWhole: (answer) => readChoices(answer, nothingRead(), (choice) => choice.text),
  readEvent: (event, read) => void readChoices(event, read, (choice) => choice.text),
};

const messages: TextApi = {
  name: "messages",
  path: "/v1/messages",
  body: (prompt, maxTokens) => ({ messages: [{ role: "user", content: prompt }], max_tokens: maxTokens }),
  readWhole: ({ content, stop_reason, usage }) => ({
    texts: [content?.map(({ text }) => text).join("") ?? ""],
    isFinished: stop_reason !== null && stop_reason !== undefined,
    isDone: true,
    outputTokens: usage?.output_tokens,
    error: undefined,
  }),
  readEvent({ type, delta, usage }, read) {
    const told = typeof delta === "object" ? delta : {};
    if (type === "content_block_delta") addText(read, 0, told.text);
    else if (type === "message_delta") {
      read.isFinished = told.stop_reason !== undefined;
      read.outputTokens = usage?.output_tokens;
    } else if (type === "message_stop") read.isDone = true;
  },
};

const responses: TextApi = {
  name: "responses",
  path: "/v1/responses",
  body: (prompt, maxTokens) => ({ input: prompt, max_output_tokens: maxTokens }),
  readWhole: ({ output, status, usage }) => ({
    texts: [output?.flatMap(({ content }) => content?.map(({ text }) => text)).join("") ?? ""],
    isFinished: status === "completed" || status === "incomplete",
    isDone: true,
    outputTokens: usage?.output_tokens,
    error: status === "failed" ? "response.failed" : undefined,
  }),
  readEvent({ type, delta, response }, read) {
    if (type === "response.output_text.delta" && typeof delta === "string") addText(read, 0, delta);
    else if (type === "response.failed") read.error = "response.failed";
    else if (type === "response.completed" || type === "response.incomplete") {
      read.isFinished = true;
      read.isDone = true;
      read.outputTokens = response?.usage?.output_tokens;
    }
  },
};

/** Every API that generates text. */
export const TEXT_APIS: readonly TextApi[] = [chat, completions, messages, responses];

/** The OpenAI shape: choices that each have a text and, at last, a finish reason. */
function readChoices(
  answer: AnswerJson,
  read: TextRead,
  textOf: (choice: ChoiceJson) => string | null | undefined,
): TextRead {
  for (const choice of answer.choices ?? []) {
    addText(read, choice.index ?? 0, textOf(choice));
    if (typeof choice.finish_reason === "string") read.isFinished = true;
  }
  read.outputTokens = answer.usage?.completion_tokens ?? read.outputTokens;
  return read;
}

function addText(read: TextRead, choice: number, text: string | null | undefined): void {
  read.texts[choice] = (read.texts[choice] ?? "") + (text ?? "");
}

/** Reads the events of a stream as they come. */
export class TextStream {
  readonly read: TextRead = nothingRead();
  readonly #api: TextApi;
  #open = "";

  constructor(api: TextApi) {
    this.#api = api;
  }

  push(text: string): void {
    const events = (this.#open + text).split("\n\n");
    this.#open = events.pop() ?? "";
    for (const event of events) this.#readEvent(event);
  }

  #readEvent(event: string): void {
    const lines = event.split("\n");
    const data = lines
      .find((line) => line.startsWith("data:"))
      ?.slice(5)
      .trim();
    if (data === undefined) return;
    if (data === "[DONE]") {
      this.read.isDone = true;
      return;
    }
    const value = JSON.parse(data) as AnswerJson;
    if ((value.error ?? undefined) !== undefined || value.type === "error" || lines.includes("event: error")) {
      this.read.error ??= errorCode(value);
    } else this.#api.readEvent(value, this.read);
  }
}

/** The code of an error in either shape; its type where it has none. */
export function errorCode(value: AnswerJson): string {
  const { code, type } = value.error ?? value;
  return String(code ?? type ?? "unknown");
}
