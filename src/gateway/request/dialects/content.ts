import { isJsonObject, type JsonObject } from "../json-object.ts";
import type { PromptPart } from "../prompt-part.ts";

/**
 * Fields of each typed block that end up in the prompt, in the order they are read. The dialects' type names do
 * not clash, so one table serves all; a block may hold blocks again (tool results, documents).
 */
const PROMPT_FIELDS: ReadonlyMap<string, readonly string[]> = new Map([
  // Text in chat, completions, Responses and Messages.
  ["text", ["text"]],
  ["input_text", ["text"]],
  ["output_text", ["text"]],
  ["summary_text", ["text"]],
  ["reasoning_text", ["text"]],
  ["refusal", ["refusal"]],
  ["thinking", ["thinking"]],
  // Opaque to everyone but its maker: no engine tokenises it.
  ["redacted_thinking", []],
  // Messages: tools and what they were given.
  ["tool_use", ["name", "input"]],
  ["server_tool_use", ["name", "input"]],
  ["mcp_tool_use", ["name", "input"]],
  ["tool_result", ["content"]],
  ["mcp_tool_result", ["content"]],
  ["search_result", ["title", "content"]],
  ["web_search_tool_result", ["content"]],
  ["web_search_result", ["title", "url"]],
  // Responses: input items.
  ["reasoning", ["summary", "content"]],
  ["function_call", ["name", "arguments"]],
  ["function_call_output", ["output"]],
  ["custom_tool_call", ["name", "input"]],
  ["custom_tool_call_output", ["output"]],
  ["computer_call", ["action"]],
  ["computer_call_output", ["output"]],
  ["local_shell_call", ["action"]],
  ["local_shell_call_output", ["output"]],
  ["mcp_call", ["name", "arguments", "output"]],
  ["code_interpreter_call", ["code"]],
  ["web_search_call", ["action"]],
  ["compaction", []],
  // A name for something kept elsewhere: its size is not in the body.
  ["item_reference", []],
]);

/** Blocks that stand for an image, a sound, a video or a file, with the field that holds it or points to it. */
const MEDIA_FIELDS: ReadonlyMap<string, string> = new Map([
  ["image_url", "image_url"],
  ["input_image", "image_url"],
  ["computer_screenshot", "image_url"],
  ["image", "source"],
  ["image_embeds", "image_embeds"],
  ["input_audio", "input_audio"],
  ["audio_url", "audio_url"],
  ["audio", "audio"],
  ["video_url", "video_url"],
  ["video", "video"],
  ["file", "file"],
  ["input_file", "file_data"],
  ["document_url", "document_url"],
  ["container_upload", "file_id"],
  ["image_generation_call", "result"],
]);

/** Nesting deeper than this is no prompt that anyone writes; it bounds the recursion. */
const MAX_DEPTH = 32;

/** A shape that is not known here. */
export const UNKNOWN: PromptPart = { kind: "unknown" };

/** Adds content as all dialects write it: a string, a block, a list of both, or nothing. */
export function addContent(parts: PromptPart[], content: unknown, depth = 0): void {
  if (content === undefined || content === null) return;
  if (typeof content === "string") parts.push({ kind: "text", text: content });
  else if (depth > MAX_DEPTH) parts.push(UNKNOWN);
  else if (Array.isArray(content)) for (const item of content) addContent(parts, item, depth + 1);
  else if (isJsonObject(content)) addBlock(parts, content, depth);
  else parts.push(UNKNOWN);
}

/** Adds each item of a list by `add`; what is no list of objects is of a shape that is not known here. */
export function addEach(
  parts: PromptPart[],
  items: unknown,
  add: (parts: PromptPart[], item: JsonObject) => void,
): void {
  if (!Array.isArray(items)) {
    parts.push(UNKNOWN);
    return;
  }
  for (const item of items) {
    if (isJsonObject(item)) add(parts, item);
    else parts.push(UNKNOWN);
  }
}

/** What `addContent` adds. */
export function contentParts(content: unknown): PromptPart[] {
  const parts: PromptPart[] = [];
  addContent(parts, content);
  return parts;
}

/** Adds the text of a value that templates print as JSON: tools, arguments, documents. */
export function addPrinted(parts: PromptPart[], value: unknown): void {
  if (value === undefined || value === null) return;
  parts.push(typeof value === "string" ? { kind: "text", text: value } : printed(value));
}

function printed(value: unknown): PromptPart {
  try {
    return { kind: "text", text: JSON.stringify(value) };
  } catch {
    // JSON.parse reads deeper nesting than JSON.stringify, which recurses, can write.
    return UNKNOWN;
  }
}

function addBlock(parts: PromptPart[], block: JsonObject, depth: number): void {
  const type = typeof block.type === "string" ? block.type : impliedType(block);
  const mediaField = MEDIA_FIELDS.get(type);
  const fields = PROMPT_FIELDS.get(type);
  if (type === "document") addDocument(parts, block, depth);
  else if (mediaField !== undefined) parts.push(media(block[mediaField] ?? block.file_id));
  else if (fields === undefined) parts.push(UNKNOWN);
  else for (const field of fields) addField(parts, block, field, depth);
}

function addField(parts: PromptPart[], block: JsonObject, field: string, depth: number): void {
  // Arguments are an object of the caller's own making, not a block.
  if (field === "input" || field === "action") addPrinted(parts, block[field]);
  else addContent(parts, block[field], depth + 1);
}

/** Some clients leave `type` out where the one field there is says it. */
function impliedType(block: JsonObject): string {
  for (const type of ["text", "image_url", "input_audio", "audio_url", "video_url"]) {
    if (type in block) return type;
  }
  return "";
}

/** An Anthropic document is text, blocks, or a file. */
function addDocument(parts: PromptPart[], block: JsonObject, depth: number): void {
  const source = block.source;
  addContent(parts, block.title, depth + 1);
  if (isJsonObject(source) && source.type === "text") addContent(parts, source.data, depth + 1);
  else if (isJsonObject(source) && source.type === "content") addContent(parts, source.content, depth + 1);
  else parts.push(media(source));
}

function media(value: unknown): PromptPart {
  return { kind: "media", source: mediaSource(value) };
}

/** The longest string is the data or the address; the rest (format, detail, media type) says little about which it is. */
function mediaSource(value: unknown): string {
  if (typeof value === "string") return value;
  if (!isJsonObject(value)) return "";
  let longest = "";
  for (const field of Object.values(value)) {
    if (typeof field === "string" && field.length > longest.length) longest = field;
  }
  return longest;
}

/** Begins a message. A role that is no text is the engine's to refuse. */
export function turn(role: unknown): PromptPart {
  return { kind: "turn", role: typeof role === "string" ? role : "" };
}
