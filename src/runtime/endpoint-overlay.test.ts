import { describe, expect, it } from "vitest";
import { testEndpoint } from "../../test/support/test-config.ts";
import { EndpointOverlay } from "./endpoint-overlay.ts";

const A = testEndpoint("a", "http://a:1");
const B = testEndpoint("b", "http://b:1");

describe("EndpointOverlay", () => {
  it("leaves what is listed as it is", () => {
    expect(new EndpointOverlay().over([A, B])).toEqual([A, B]);
  });

  it("adds behind what is listed, and replaces in place", () => {
    const overlay = new EndpointOverlay();
    const other = testEndpoint("a", "http://a:2");
    const c = testEndpoint("c", "http://c:1");
    overlay.put(other);
    overlay.put(c);
    expect(overlay.over([A, B])).toEqual([other, B, c]);
    // Nothing is listed any more: what was put is there all the same.
    expect(overlay.over([])).toEqual([other, c]);
  });

  it("keeps away what was removed, however often it is listed, until it is put", () => {
    const overlay = new EndpointOverlay();
    overlay.remove("a");
    expect(overlay.over([A, B])).toEqual([B]);
    overlay.put(A);
    expect(overlay.over([A, B])).toEqual([A, B]);
    overlay.remove("a");
    expect(overlay.over([B])).toEqual([B]);
  });

  it("weighs what is listed and what was put, until it is put anew", () => {
    const overlay = new EndpointOverlay();
    overlay.weigh("a", 0.5);
    expect(overlay.over([A, B])).toEqual([{ ...A, weight: 0.5 }, B]);
    overlay.put({ ...A, weight: 4 });
    expect(overlay.over([A, B])).toEqual([{ ...A, weight: 4 }, B]);
  });

  it("remembers who is drained, over a replacement but not over a removal", () => {
    const overlay = new EndpointOverlay();
    overlay.drain("a", true);
    overlay.put(A);
    expect(overlay.isDrained("a")).toBe(true);
    overlay.remove("a");
    overlay.put(A);
    expect(overlay.isDrained("a")).toBe(false);
    overlay.drain("b", true);
    overlay.drain("b", false);
    expect(overlay.isDrained("b")).toBe(false);
  });

  it("takes one server for one endpoint, by its id and by its URL", () => {
    const overlay = new EndpointOverlay();
    overlay.put(testEndpoint("extra", "http://b:1"));
    expect(overlay.over([A, testEndpoint("a", "http://a:2"), B])).toEqual([A, B]);
  });

  it("takes on all that another holds, in place of its own", () => {
    const overlay = new EndpointOverlay();
    const c = testEndpoint("c", "http://c:1");
    overlay.put(c);
    overlay.remove("b");
    overlay.weigh("a", 0.5);
    overlay.drain("a", true);
    const other = new EndpointOverlay();
    other.remove("a");
    other.drain("b", true);
    other.take(overlay.changes);
    expect(other.changes).toEqual(overlay.changes);
    expect(other.over([A, B])).toEqual([{ ...A, weight: 0.5 }, c]);
    expect([other.isDrained("a"), other.isDrained("b")]).toEqual([true, false]);
    overlay.put(B);
    expect(other.over([A, B])).toEqual([{ ...A, weight: 0.5 }, c]);
  });
});
