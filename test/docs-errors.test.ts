import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ERRORS } from "../src/gateway/index.ts";

const page = readFileSync(new URL("../docs/errors.md", import.meta.url), "utf8");

/** Rows of the page's first table, less the sentence at their end. */
const documented = [...page.matchAll(/^\| `(\w+)` \| (\d{3}) \| `(\w+)` \| `(\w+)` \|/gm)].map((row) => row.slice(1));

describe("docs/errors.md", () => {
  it("lists exactly the errors that exist, with their status and types", () => {
    const existing = Object.entries(ERRORS).map(([code, { status, openaiType, anthropicType }]) => [
      code,
      String(status),
      openaiType,
      anthropicType,
    ]);
    expect(documented).toEqual(existing);
  });

  it("says which of them close the connection", () => {
    const closing = Object.entries(ERRORS).flatMap(([code, kind]) => (kind.closesConnection ? [`\`${code}\``] : []));
    expect(page).toContain(`\`connection: close\` with ${closing.slice(0, -1).join(", ")} and ${closing.at(-1)}.`);
  });
});
