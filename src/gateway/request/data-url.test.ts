import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { splitDataUrls } from "./data-url.ts";

const data = "data:image/png;base64,".concat("iVBORw0KGgo+/_-=".repeat(400));

describe("splitDataUrls", () => {
  it("takes a data URL out of the text around it", () => {
    expect(splitDataUrls(`see ![](${data}) here`)).toEqual([
      { text: "see ![](", isDataUrl: false },
      { text: data, isDataUrl: true },
      { text: ") here", isDataUrl: false },
    ]);
  });

  it("takes out each of several", () => {
    const pieces = splitDataUrls(`${data} and ${data}`);
    expect(pieces.map((piece) => piece.isDataUrl)).toEqual([true, false, true]);
  });

  it.each([
    ["a short one", "data:image/png;base64,iVBORw0KGgo="],
    ["base64 without its head", `${"x".repeat(5000)};base64,${"A".repeat(5000)}`],
    ["plain text", "word ".repeat(2000)],
    ["nothing", ""],
  ])("leaves %s as text", (_, text) => {
    expect(splitDataUrls(text)).toEqual([{ text, isDataUrl: false }]);
  });

  it("loses nothing", () => {
    const piece = fc.constantFrom(data, "data:", ";base64,", "AAAA", " ", "é", "x".repeat(5000));
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = pieces.join("");
        expect(
          splitDataUrls(text)
            .map(({ text: part }) => part)
            .join(""),
        ).toBe(text);
      }),
    );
  });
});
