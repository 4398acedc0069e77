import { describe, expect, it } from "vitest";
import { readModels } from "./models.ts";

const list = (...data: readonly unknown[]): string => JSON.stringify({ object: "list", data });

describe("readModels", () => {
  it("reads ids, context and owner", () => {
    const body = list({ id: "base", owned_by: "vllm", max_model_len: 4096 }, { id: "lora", owned_by: "vllm" });
    expect(readModels(body)).toEqual([
      { id: "base", ownedBy: "vllm", contextTokens: 4096 },
      { id: "lora", ownedBy: "vllm", contextTokens: undefined },
    ]);
  });

  it("reads the context of a llama.cpp slot", () => {
    expect(readModels(list({ id: "m", owned_by: "llamacpp", meta: { n_ctx: 2048 } }))?.[0]?.contextTokens).toBe(2048);
  });

  it("keeps each id once and leaves out entries without one", () => {
    expect(readModels(list({ id: "a" }, { id: "a" }, { id: "" }, { id: 7 }, null, "b"))?.map(({ id }) => id)).toEqual([
      "a",
    ]);
  });

  it("takes a context that is no positive number as unknown", () => {
    expect(readModels(list({ id: "a", max_model_len: "4096" }))?.[0]?.contextTokens).toBeUndefined();
    expect(readModels(list({ id: "a", max_model_len: 0 }))?.[0]?.contextTokens).toBeUndefined();
  });

  it("tells an empty list from no list", () => {
    expect(readModels(list())).toEqual([]);
    expect(readModels('{"data":{}}')).toBeUndefined();
    expect(readModels("<html>")).toBeUndefined();
    expect(readModels("[]")).toBeUndefined();
  });
});
