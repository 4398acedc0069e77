import type * as Crypto from "node:crypto";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { keyHash } from "../../../test/support/client-key.ts";
import { createKeyCheck } from "./key-check.ts";

const compared = vi.hoisted((): Buffer[] => []);
vi.mock("node:crypto", async (original) => {
  const crypto = await original<typeof Crypto>();
  const timingSafeEqual = (one: Buffer, other: Buffer): boolean => {
    compared.push(one);
    return crypto.timingSafeEqual(one, other);
  };
  return { ...crypto, timingSafeEqual };
});

beforeEach(() => void compared.splice(0));

describe("createKeyCheck", () => {
  const keys = ["first", "second", "third"].map((key) => keyHash(`id-${key}`, key));

  it.each([
    { presented: "first", id: "id-first" },
    { presented: "second", id: "id-second" },
    { presented: "third", id: "id-third" },
    { presented: "none of them", id: undefined },
    { presented: "x".repeat(10_000), id: undefined },
  ])("compares with every key, in constant time, whichever it is: $id", ({ presented, id }) => {
    expect(createKeyCheck(keys)({ "x-api-key": presented })?.id).toBe(id);
    expect(compared).toEqual(keys.map(({ sha256 }) => sha256));
  });

  it("knows nobody without keys", () => {
    expect(createKeyCheck([])({ "x-api-key": "first" })).toBeUndefined();
  });
});
