import { describe, expect, it } from "vitest";
import { interpolate } from "./interpolation.ts";

const environment = { KEY: "abc", EMPTY: "", TRICKY: `$& \${KEY}` };

describe("interpolate", () => {
  it.each([
    ["plain $KEY text", "plain $KEY text"],
    [`\${KEY}`, "abc"],
    [`a-\${KEY}-\${KEY}`, "a-abc-abc"],
    [`\${EMPTY}`, ""],
    [`\${NONE:-x}`, "x"],
    [`\${NONE:-}`, ""],
    [`\${EMPTY:-x}`, "x"],
    [`\${KEY:-x}`, "abc"],
    [`$\${KEY}`, `\${KEY}`],
    [`\${TRICKY}`, `$& \${KEY}`],
  ])("makes %j into %j", (text, filled) => {
    expect(interpolate(text, environment)).toMatchObject({ text: filled, missing: [], isMalformed: false });
  });

  it("names the variables that are missing", () => {
    expect(interpolate(`\${NONE}-\${KEY}-\${ALSO}`, environment)).toMatchObject({
      used: ["NONE", "KEY", "ALSO"],
      missing: ["NONE", "ALSO"],
    });
  });

  it.each([`\${KEY`, `\${}`, `\${KEY-x}`, `\${1}`, `\${a b}`])("finds %j malformed", (text) => {
    expect(interpolate(text, environment)).toMatchObject({ isMalformed: true, text });
  });
});
