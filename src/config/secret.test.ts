import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { HIDDEN, Secret } from "./secret.ts";

describe("Secret", () => {
  const secret = new Secret("k3y-42");

  it.each([
    ["as text", String(secret)],
    ["in a template", `${secret}`],
    ["as JSON", JSON.stringify({ apiKey: secret })],
  ])("is replaced %s", (_form, text) => {
    expect(text).toContain(HIDDEN);
    expect(text).not.toContain("k3y-42");
  });

  it("is not shown by inspection", () => {
    expect(inspect({ endpoint: { apiKey: secret } }, { depth: 9, showHidden: true })).not.toContain("k3y-42");
  });

  it("is given to who asks for it", () => expect(secret.reveal()).toBe("k3y-42"));
});
