import { expect, it } from "vitest";
import { endpoint } from "./endpoint.ts";

it("leaves what is not configured to be learned", () => {
  expect(endpoint({ id: "a" })).toEqual({
    id: "a",
    url: "",
    weight: 1,
    tokensPerSecond: undefined,
    kvCapacityTokens: undefined,
  });
});

it("keeps what is configured, a weight of 0 too", () => {
  const facts = { id: "a", url: "http://a", weight: 0, tokensPerSecond: 500, kvCapacityTokens: 1000 };
  expect(endpoint(facts)).toEqual(facts);
});
