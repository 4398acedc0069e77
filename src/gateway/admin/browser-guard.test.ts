import type { IncomingHttpHeaders } from "node:http";
import { describe, expect, it } from "vitest";
import { strangerProblem } from "./browser-guard.ts";

function statusOf(method: string, headers: IncomingHttpHeaders, adminHost?: string): number | undefined {
  return strangerProblem({ method, headers: { host: "127.0.0.1:9090", ...headers } }, adminHost)?.status;
}

const JSON_BODY = { "content-type": "application/json", "content-length": "2" };

describe("a request to an admin listener without keys", () => {
  it.each([
    ["127.0.0.1:9090", undefined],
    ["10.1.2.3", undefined],
    ["[::1]:9090", undefined],
    ["[fe80::1]", undefined],
    ["localhost", undefined],
    ["LocalHost:9090", undefined],
    ["balancer.internal:9090", undefined],
    ["Balancer.Internal", undefined],
    ["evil.test", 403],
    ["evil.test:9090", 403],
    ["localhost.evil.test", 403],
    ["127.0.0.1.evil.test", 403],
    ["127.0.0.1:9090.evil.test", 403],
    ["evil.test:127.0.0.1", 403],
    ["[::1].evil.test", 403],
    ["2130706433", 403],
    ["0x7f.1", 403],
    ["", 403],
  ])("to the host %j is told %s", (host, status) => {
    for (const method of ["GET", "POST"]) expect(statusOf(method, { host }, "balancer.internal")).toBe(status);
  });

  it("of HTTP/1.0 needs no host", () => {
    expect(statusOf("GET", { host: undefined })).toBeUndefined();
  });

  it.each<[string, IncomingHttpHeaders, number | undefined]>([
    ["nothing more", {}, undefined],
    ["a body of JSON", JSON_BODY, undefined],
    ["a body of JSON with a charset", { ...JSON_BODY, "content-type": "application/json; charset=utf-8" }, undefined],
    ["an empty body", { "content-length": "0" }, undefined],
    ["the origin of a page", { ...JSON_BODY, origin: "http://evil.test" }, 403],
    ["an opaque origin", { ...JSON_BODY, origin: "null" }, 403],
    ["the origin of another port here", { ...JSON_BODY, origin: "http://127.0.0.1:3000" }, 403],
    ["another site's mark", { ...JSON_BODY, "sec-fetch-site": "cross-site" }, 403],
    ["the mark of another host of this site", { ...JSON_BODY, "sec-fetch-site": "same-site" }, 403],
    ["the mark of an address that was typed", { ...JSON_BODY, "sec-fetch-site": "none" }, undefined],
    ["a body of no type", { "content-length": "2" }, 415],
    ["a chunked body of no type", { "transfer-encoding": "chunked" }, 415],
    ["a body as forms have it", { ...JSON_BODY, "content-type": "text/plain" }, 415],
    ["a body that mentions JSON", { ...JSON_BODY, "content-type": "text/plain; x=application/json" }, 415],
    ["a body of a type like it", { ...JSON_BODY, "content-type": "application/json5" }, 415],
  ])("that changes something, with %s, is told %s", (_what, headers, status) => {
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) expect(statusOf(method, headers)).toBe(status);
  });

  it("that changes nothing may come from a page, which cannot read the answer", () => {
    for (const method of ["GET", "HEAD"]) expect(statusOf(method, { origin: "http://evil.test" })).toBeUndefined();
  });
});
