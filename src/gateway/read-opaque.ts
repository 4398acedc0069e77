import { isJsonObject, type JsonObject } from "./json-object.ts";
import { measurePrompt } from "./prompt-size.ts";
import type { RequestFacts } from "./read-request.ts";

/**
 * What can be said of a body whose shape is not known: the model's name if it is JSON and names one,
 * and a bounded guess at its size. Any body passes, an upload as well as none at all.
 */
export function readOpaque(contentType: string | undefined, bytes: Buffer): RequestFacts {
  const body = contentType?.startsWith("application/json") ? parse(bytes) : {};
  return {
    isReadable: true,
    model: typeof body.model === "string" ? body.model : undefined,
    isStreaming: false,
    prompt: measurePrompt([{ kind: "unknown" }], bytes.length),
    maxOutputTokens: undefined,
    usageWish: "unspecified",
    body,
    hashPrefix: () => undefined,
  };
}

function parse(bytes: Buffer): JsonObject {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
