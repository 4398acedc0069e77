import type { HealthReading } from "./adapter.ts";
import { parseJson } from "./json.ts";

/** Engines that are not there yet answer 503 in these words; a 503 without them is a fault. */
const NOT_YET = /\b(?:loading|initiali[sz]ing|starting|warming up)\b/i;

/**
 * The rule all engines share. A success that carries a web page is none: something else answers at this address, as
 * any page of a single-page application would. Redirects are not followed, so that a key never travels elsewhere.
 */
export function readHealthByStatus(status: number, body: string): HealthReading {
  if (status === 401 || status === 403) return { kind: "auth_failed", reason: `answered ${status}` };
  if (status === 503 && NOT_YET.test(body)) return { kind: "loading", reason: "answered 503: still loading" };
  if (status < 200 || status > 299) return { kind: "failed", reason: `answered ${status}` };
  if (/^\s*</.test(body)) return { kind: "failed", reason: `answered ${status} with a web page` };
  return { kind: "ok" };
}

/** As `readHealthByStatus`, where a success must also be a JSON object with the member `name`. */
export function readHealthByMember(status: number, body: string, name: string): HealthReading {
  const reading = readHealthByStatus(status, body);
  if (reading.kind !== "ok") return reading;
  const json = parseJson(body);
  if (json !== undefined && name in json) return reading;
  return { kind: "failed", reason: `answered ${status} without "${name}"` };
}
