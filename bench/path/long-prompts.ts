import { MODEL } from "./workload.ts";

/** A chat request of about 400 kB: 100k tokens of English. */
export interface LongPrompt {
  readonly name: string;
  readonly body: string;
}

const BODY_BYTES = 400_000;
/** Of a long conversation, or of an agent at work. */
const TURNS = 200;

/** What texts are put together from: plain words, and what people and tools send as well. */
const WORDS: Readonly<Record<"ASCII" | "mixed", readonly string[]>> = {
  ASCII: ["the", "balancer", "sends", "each", "request", "where", "it", "waits", "least", "and", "looks", "on."],
  // Line ends and quotation marks are escaped in JSON; letters of two, three and four bytes are not.
  mixed: ["the", "Größe", "of", "été", '"quoted"', "line\n", "東京", "запрос", "\tindented", "{ x: 1 }\n", "and", "🙂"],
};

/** Each kind of text as one message and as a conversation of many turns. */
export function longPrompts(): LongPrompt[] {
  return (["ASCII", "mixed"] as const).flatMap((kind) => [
    { name: `${kind}, one message`, body: chatBody(WORDS[kind], 1) },
    { name: `${kind}, ${TURNS} turns`, body: chatBody(WORDS[kind], TURNS) },
  ]);
}

function chatBody(words: readonly string[], turns: number): string {
  const messages = Array.from({ length: turns }, (_, turn) => ({
    role: turn % 2 === 0 ? "user" : "assistant",
    content: textOf(words, Math.floor(BODY_BYTES / turns), turn),
  }));
  return JSON.stringify({ model: MODEL, stream: false, max_tokens: 256, messages });
}

/** Words until they take so many bytes in a message of JSON. Two texts of different seeds differ from the start. */
function textOf(words: readonly string[], bytes: number, seed: number): string {
  const parts: string[] = [`${seed}`];
  // Role, names and brackets of a message take some as well.
  let left = bytes - MESSAGE_FRAME_BYTES;
  for (let at = seed; left > 0; at += 1 + (at % 3)) {
    const word = words[at % words.length] as string;
    parts.push(word);
    left -= Buffer.byteLength(JSON.stringify(word)) - QUOTES_LESS_SPACE;
  }
  return parts.join(" ");
}

const MESSAGE_FRAME_BYTES = 36;
/** JSON puts two quotation marks around a word; here it gets one space. */
const QUOTES_LESS_SPACE = 1;
