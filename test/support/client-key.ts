import { createHash } from "node:crypto";
import type { ClientKey, KeyHash } from "../../src/runtime/index.ts";

/** A key as the configuration keeps it. */
export function keyHash(id: string, key: string): KeyHash {
  return { id, sha256: createHash("sha256").update(key).digest() };
}

/** A client's key, without limits unless `settings` says so. */
export function clientKey(id: string, key: string, settings: Partial<ClientKey> = {}): ClientKey {
  return {
    ...keyHash(id, key),
    tenant: id,
    priority: "normal",
    requestsPerMinute: undefined,
    tokensPerMinute: undefined,
    models: undefined,
    ...settings,
  };
}
