import { describe, expect, it } from "vitest";
import { z } from "zod";
import { engineOptions } from "./options.ts";
import { createEngineServer } from "./server.ts";

describe("engineOptions", () => {
  it("fills in the defaults", () => {
    expect(engineOptions.parse({})).toEqual({
      listen: { host: "127.0.0.1", port: 8000 },
      model: "evenkeel-demo",
      speed: 1,
      profile: "llama8b-h100",
      seed: 0,
      faults: [],
      allowFaultControl: false,
    });
  });

  it.each([
    ["127.0.0.1:0", { host: "127.0.0.1", port: 0 }],
    ["[::1]:8000", { host: "::1", port: 8000 }],
    ["localhost:80", { host: "localhost", port: 80 }],
  ])("listens on %s", (listen, expected) => {
    expect(engineOptions.parse({ listen }).listen).toEqual(expected);
  });

  it.each([
    ["listen", { listen: "8000" }],
    ["listen", { listen: "host:70000" }],
    ["speed", { speed: 0 }],
    ["profile", { profile: "abacus" }],
    ["faults.0", { faults: ["explode"] }],
    ["maxModelLen", { kvTokens: 1000, maxModelLen: 993 }],
    ["", { colour: "red" }],
  ])("names the field at fault: %s", (path, options) => {
    const { error } = engineOptions.safeParse(options);
    expect(error?.issues.map((issue) => issue.path.join("."))).toEqual([path]);
  });

  it("declares a flag, a variable and a description for every field", () => {
    const described = Object.entries(engineOptions.shape).map(([name, field]) => [name, z.globalRegistry.get(field)]);
    expect(described).not.toHaveLength(0);
    for (const [, meta] of described) {
      expect(meta).toMatchObject({
        flag: expect.stringMatching(/^--[a-z-]+$/),
        env: expect.stringMatching(/^EVENKEEL_ENGINE_[A-Z_]+$/),
        description: expect.stringMatching(/^[A-Z].{10,}/),
      });
    }
  });

  it("stops a server that is configured wrongly", () => {
    expect(() => createEngineServer({ speed: -1 })).toThrow("speed");
  });
});
