import { z } from "zod";
import type { PromptPart } from "./tokens.ts";

/** A prompt as the client gave it: parts of a template, or token ids. */
export type Prompt = readonly PromptPart[] | Uint32Array;

/** A message of any dialect; what the template does not know is kept as JSON text. */
export const message: z.ZodType<Message> = z.looseObject({
  role: z.string().optional(),
  content: z.unknown().optional(),
});

export interface Message {
  readonly role?: string | undefined;
  readonly content?: unknown;
}

/** All four shapes of a completion prompt: text, texts, token ids, lists of token ids. */
export const promptShapes: z.ZodType<string | string[] | number[] | number[][]> = z.union([
  z.string(),
  z.array(z.string()).min(1),
  z.array(z.int().min(0)).min(1),
  z.array(z.array(z.int().min(0)).min(1)).min(1),
]);

/** One prompt per completion. */
export function promptsOf(shape: z.infer<typeof promptShapes>): Prompt[] {
  if (typeof shape === "string") return [[{ text: shape }]];
  if (isTokenIds(shape)) return [Uint32Array.from(shape)];
  return shape.map((prompt) => (typeof prompt === "string" ? [{ text: prompt }] : Uint32Array.from(prompt)));
}

function isTokenIds(shape: readonly (string | number | number[])[]): shape is number[] {
  return typeof shape[0] === "number";
}

/**
 * The chat template: tools, then each message behind a header with its role, then the header of the reply.
 * A reply repeated in the next turn stands where it was generated, so its tokens are the same.
 */
export function chatPrompt(messages: readonly Message[], tools?: unknown): PromptPart[] {
  const parts: PromptPart[] = [];
  if (tools !== undefined && tools !== null) parts.push(header("tools"), { text: JSON.stringify(tools) });
  for (const { role, content, ...rest } of messages) {
    parts.push(header(role ?? "input"));
    parts.push(...contentParts(content));
    if (Object.keys(rest).length > 0) parts.push({ text: JSON.stringify(rest) });
  }
  parts.push(header("assistant"));
  return parts;
}

function header(role: string): PromptPart {
  return { text: `<|${role}|>` };
}

/** Text and media of a message's content: a string, or a list of parts in the form of any dialect. */
function contentParts(content: unknown): PromptPart[] {
  if (typeof content === "string") return [{ text: content }];
  if (content === undefined || content === null) return [];
  if (!Array.isArray(content)) return [{ text: JSON.stringify(content) }];
  return content.flatMap(contentPart);
}

const MEDIA_TYPE = /image|audio|video|file|document/;

const typedPart = z.looseObject({
  type: z.string().optional(),
  text: z.string().optional(),
  content: z.unknown().optional(),
});

function contentPart(part: unknown): PromptPart[] {
  const { data } = typedPart.safeParse(part);
  if (data?.text !== undefined) return [{ text: data.text }];
  if (data?.type !== undefined && MEDIA_TYPE.test(data.type)) return [{ media: JSON.stringify(part) }];
  if (data?.content !== undefined) return contentParts(data.content);
  return [{ text: JSON.stringify(part) ?? "" }];
}
