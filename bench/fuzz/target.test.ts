import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applied, cutAt, editedText } from "./edits.ts";
import { type FuzzRow, type OpenTarget, runTarget } from "./target.ts";

function run(check: OpenTarget["check"], close: () => Promise<void> = async () => {}): Promise<FuzzRow> {
  const target = {
    name: "text",
    inputs: "texts",
    open: async () => ({ arbitrary: editedText(["some text"], ["x"]).map(applied), check, close }),
  };
  return runTarget(target, { runs: 300, seed: 1, path: undefined, beat: () => {} });
}

describe("a fuzzed target", () => {
  it("that bears all inputs has no failure", async () => {
    expect(await run(() => {})).toMatchObject({ target: "text", inputs: 300, failure: undefined });
  });

  it("fails with the smallest input that shows it", async () => {
    const { failure } = await run((input) => {
      if (String(input).includes("x", 6)) throw new Error("an x");
    });
    expect(failure).toMatchObject({ message: "an x" });
    expect(failure?.input?.length).toBeLessThan('"some text"'.length + 3);
  });

  it("fails when nobody catches an error of its own", async () => {
    const { failure } = await run(async () => {
      void Promise.reject(new Error("nobody cares"));
      await new Promise((resolve) => setImmediate(resolve));
    });
    expect(failure?.message).toContain("nobody cares");
  });

  it("fails when it leaves something behind", async () => {
    const { failure } = await run(
      () => {},
      async () => {
        throw new Error("3 sockets");
      },
    );
    expect(failure).toMatchObject({ message: "at the end: 3 sockets", input: undefined });
  });
});

describe("pieces of an input", () => {
  it("are the input again when they are put together", () => {
    const share = fc.integer({ min: 0, max: 100 }).map((percent) => percent / 100);
    fc.assert(
      fc.property(fc.string(), fc.array(share), (text, cuts) => {
        const bytes = Buffer.from(text);
        const pieces = cutAt(bytes, cuts);
        expect(pieces).toHaveLength(cuts.length + 1);
        expect(Buffer.concat(pieces)).toEqual(bytes);
      }),
    );
  });
});
