import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { KeyHash } from "../../runtime/index.ts";

/** Finds the key that a request's headers present; undefined: it presents none that is known. */
export type KeyCheck<K extends KeyHash> = (headers: IncomingHttpHeaders) => K | undefined;

/**
 * A check against `keys`. What was presented is hashed and its hash compared with every key's, each comparison and the
 * round of them taking equally long however it turns out: time tells neither how much of a guess was right nor which
 * key it was.
 */
export function createKeyCheck<K extends KeyHash>(keys: readonly K[]): KeyCheck<K> {
  return (headers) => {
    const presented = presentedKey(headers);
    if (presented === undefined) return undefined;
    const digest = createHash("sha256").update(presented).digest();
    let found: K | undefined;
    for (const key of keys) if (timingSafeEqual(key.sha256, digest)) found = key;
    return found;
  };
}

/** The bytes of the bearer token, else of `x-api-key`, as they came; undefined: neither is there. */
function presentedKey({ authorization, "x-api-key": apiKey }: IncomingHttpHeaders): Buffer | undefined {
  const bearer = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
  const key = bearer ?? apiKey;
  return key === undefined ? undefined : Buffer.from(String(key), "latin1");
}

/** RFC 6750, 2.1; the scheme's case does not matter (RFC 9110, 11.1). */
const BEARER = /^bearer +(\S+)$/i;
