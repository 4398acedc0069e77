import { replaceModel } from "./body-edit.ts";
import { isJsonObject, type JsonObject } from "./json-object.ts";
import { findMultipartModel } from "./multipart-model.ts";
import { measurePrompt } from "./prompt-size.ts";
import type { RequestFacts } from "./read-request.ts";

/**
 * What can be said of a body whose shape is not known: the model's name if it is JSON or a form and names one,
 * and a bounded guess at its size. Any body passes, an upload as well as none at all.
 */
export function readOpaque(contentType: string | undefined, bytes: Buffer): RequestFacts {
  const body = isJson(contentType) ? parse(bytes) : {};
  return {
    isReadable: true,
    model: typeof body.model === "string" ? body.model : formModel(contentType, bytes),
    isStreaming: false,
    prompt: measurePrompt([{ kind: "unknown" }], bytes.length),
    maxOutputTokens: undefined,
    usageWish: "unspecified",
    body,
    hashPrefix: () => undefined,
  };
}

/** The body with another name in place of the one that `readOpaque` found. */
export function renameOpaque(contentType: string | undefined, bytes: Buffer, model: string): Buffer {
  if (isJson(contentType)) return replaceModel(bytes, model);
  const range = findMultipartModel(contentType ?? "", bytes);
  if (range === undefined) return bytes;
  return Buffer.concat([bytes.subarray(0, range.from), Buffer.from(model), bytes.subarray(range.to)]);
}

function isJson(contentType: string | undefined): boolean {
  return contentType?.startsWith("application/json") === true;
}

function formModel(contentType: string | undefined, bytes: Buffer): string | undefined {
  const range = findMultipartModel(contentType ?? "", bytes);
  return range === undefined ? undefined : bytes.toString("utf8", range.from, range.to);
}

function parse(bytes: Buffer): JsonObject {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
