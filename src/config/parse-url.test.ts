import { expect, it } from "vitest";
import { parseUrl } from "./parse-url.ts";

it("says of text beyond ASCII the same the ten thousandth time as the first", () => {
  for (let i = 0; i < 10_000; i++) {
    expect(parseUrl(`http://É:${i % 7}`)?.host).toBe(`xn--9ca:${i % 7}`);
    expect(parseUrl(`http://h\u0000É:${i % 7}`)).toBeUndefined();
  }
});
