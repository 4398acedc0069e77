import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { ENGINE_PROFILES } from "../sim/index.ts";
import { FAULT_KINDS } from "./faults.ts";
import { engineOptions } from "./options.ts";
import { INFERENCE_ROUTES } from "./routes.ts";

const lines = readFileSync(new URL("../../docs/engine.md", import.meta.url), "utf8").split("\n");

/** First cell of every table row in the section, without backticks. */
function rows(section: string): string[][] {
  const start = lines.indexOf(`## ${section}`);
  const end = lines.findIndex((line, index) => index > start && line.startsWith("## "));
  return lines
    .slice(start, end < 0 ? undefined : end)
    .filter((line) => line.startsWith("| `"))
    .map((line) =>
      line
        .slice(2, -2)
        .split(" | ")
        .map((cell) => cell.replaceAll("`", "").trim()),
    );
}

describe("docs/engine.md", () => {
  it("lists exactly the options there are, with their variables and defaults", () => {
    const declared = Object.values(engineOptions.shape).map((field) => {
      const { flag, env } = z.globalRegistry.get(field) ?? {};
      return [flag, env];
    });
    const documented = rows("Options").map(([flag = "", env]) => [flag.split(" ")[0], env]);
    expect(documented.toSorted()).toEqual(declared.toSorted());
    for (const [flag = "", , initial] of rows("Options")) {
      const field = Object.values(engineOptions.shape).find(
        (candidate) => z.globalRegistry.get(candidate)?.flag === flag.split(" ")[0],
      );
      const value = field?.parse(undefined);
      if (typeof value === "string" || typeof value === "number") expect(initial).toBe(String(value));
    }
  });

  it("lists exactly the faults there are", () => {
    expect(rows("Faults").map(([kind = ""]) => kind.split("=")[0])).toEqual(FAULT_KINDS);
  });

  it("gives every profile with its numbers", () => {
    const documented = rows("What is modelled").map(([name, ...numbers]) => [
      name,
      ...numbers.map((number) => Number(number.replaceAll(",", ""))),
    ]);
    const declared = ENGINE_PROFILES.map(({ name, coefficients: engine, bend, kvTokens, maxSequences }) => [
      name,
      engine.stepMs,
      engine.weightsMs,
      engine.computeMs,
      engine.tokenMs,
      engine.pairMs,
      engine.contextMs,
      bend,
      kvTokens,
      engine.maxBatchTokens,
      maxSequences,
    ]);
    expect(documented).toEqual(declared);
  });

  it("lists every route that takes a body", () => {
    const documented = lines.filter((line) => line.startsWith("| `POST ")).join("\n");
    const paths = [...documented.matchAll(/`(?:POST )?(\/[^`]+)`/g)].map(([, path]) => path);
    expect(paths.toSorted()).toEqual([...INFERENCE_ROUTES.keys()].toSorted());
  });
});
