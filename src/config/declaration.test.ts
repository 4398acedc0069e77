import { describe, expect, it } from "vitest";
import { z } from "zod";
import { policyDefinitions } from "../core/index.ts";
import { settingsOf, valuesOf } from "./declaration.ts";
import { configSchema } from "./schema.ts";

describe("settingsOf", () => {
  const schema = z.strictObject({
    speed: z.number().default(1).describe("How fast."),
    log: z.strictObject({ level: z.enum(["debug", "info"]).default("info") }).prefault({}),
    faults: z.array(z.string()).default([]).meta({ flag: "--fault", env: "FAULTS", separator: ";" }),
    isLoud: z.boolean().default(false),
    shape: z.strictObject({ size: z.number() }).optional(),
    named: z.string(),
    mixed: z.union([z.string().transform(Number), z.strictObject({ size: z.number() })]).optional(),
    table: z.record(z.string(), z.string()).optional(),
  });
  const byName = new Map(valuesOf(settingsOf(schema, "TEST")).map((setting) => [setting.path.join("."), setting]));

  it.each([
    ["speed", { flag: "--speed", environment: "TEST_SPEED", form: "text", value: "number", initial: "1" }],
    ["log.level", { flag: "--log-level", environment: "TEST_LOG_LEVEL", choices: ["debug", "info"], initial: "info" }],
    ["faults", { flag: "--fault", environment: "FAULTS", form: "list", separator: ";", initial: undefined }],
    ["isLoud", { flag: "--is-loud", environment: "TEST_IS_LOUD", form: "switch" }],
    ["shape.size", { flag: "--shape-size", isRequired: true }],
    ["named", { isRequired: true, initial: undefined }],
    ["mixed", { form: "text" }],
    ["table", { form: "structure", value: "mapping" }],
  ])("derives %s", (name, expected) => expect(byName.get(name)).toMatchObject(expected));
});

describe("the settings of a balancer", () => {
  const settings = valuesOf(settingsOf(configSchema(policyDefinitions)));

  it("all say what they are for", () => {
    expect(settings.filter(({ description }) => !description.endsWith("."))).toEqual([]);
  });

  it.each(["flag", "environment"] as const)("share no %s", (name) => {
    const names = settings.map((setting) => setting[name]);
    expect(new Set(names).size).toBe(names.length);
  });

  it("have no variable that Kubernetes sets for a service called evenkeel", () => {
    const ofService = /^EVENKEEL(_\w+)?_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\w+)?)$/;
    expect(settings.filter(({ environment }) => ofService.test(environment))).toEqual([]);
  });
});
