import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { askForUsage, replaceModel } from "./body-edit.ts";

const edit = (editor: (body: Buffer) => Buffer, text: string): string => editor(Buffer.from(text)).toString();

describe("replaceModel", () => {
  it.each([
    ['{"model":"a","x":1}', '{"model":"org/größer","x":1}'],
    ['{ "x" : {"model":"inner"},\n"model" : "a" }', '{ "x" : {"model":"inner"},\n"model" : "org/größer" }'],
    ['{"model":"a","model":"b"}', '{"model":"a","model":"org/größer"}'],
    ['{"mod\\u0065l":"a"}', '{"mod\\u0065l":"org/größer"}'],
    ['{"text":"\\"model\\":\\"a\\" \\\\","model":"a"}', '{"text":"\\"model\\":\\"a\\" \\\\","model":"org/größer"}'],
    ['{"model":null}', '{"model":"org/größer"}'],
    ['{"x":1}', '{"model":"org/größer","x":1}'],
    ["{}", '{"model":"org/größer"}'],
    ['\ufeff {"model":"a"}', '\ufeff {"model":"org/größer"}'],
  ])("turns %s into %s", (before, after) => {
    expect(edit((body) => replaceModel(body, "org/größer"), before)).toBe(after);
  });

  it("changes the bytes of the last model value and no others", () => {
    fc.assert(
      fc.property(members(["model"]), fc.string(), (list, name) => {
        const last = list.findLastIndex(({ key }) => key === "model");
        const expected = list.map((member, i) => (i === last ? { ...member, value: JSON.stringify(name) } : member));
        fc.pre(last !== -1);
        expect(edit((body) => replaceModel(body, name), print(list))).toBe(print(expected));
      }),
    );
  });
});

describe("askForUsage", () => {
  it.each([
    ['{"stream":true}', '{"stream_options":{"include_usage":true},"stream":true}'],
    ["{ }", '{"stream_options":{"include_usage":true} }'],
    ['{"stream_options":{}}', '{"stream_options":{"include_usage":true}}'],
    ['{"stream_options":{"a":1}}', '{"stream_options":{"include_usage":true,"a":1}}'],
    ['{"stream_options":{"include_usage":false,"a":1}}', '{"stream_options":{"include_usage":true,"a":1}}'],
    ['{"stream_options":{"include_usage":null}}', '{"stream_options":{"include_usage":true}}'],
    ['{"stream_options":null,"a":1}', '{"stream_options":{"include_usage":true},"a":1}'],
    ['{"a":"stream_options"}', '{"stream_options":{"include_usage":true},"a":"stream_options"}'],
    ['{"a":{"stream_options":{}}}', '{"stream_options":{"include_usage":true},"a":{"stream_options":{}}}'],
  ])("turns %s into %s", (before, after) => {
    expect(edit(askForUsage, before)).toBe(after);
  });

  it.each(['{"stream_options":"yes"}', '{"stream_options":[1]}', '{"stream_options":7}'])("leaves %s alone", (text) => {
    expect(edit(askForUsage, text)).toBe(text);
  });

  it("changes nothing but the option", () => {
    fc.assert(
      fc.property(members(["stream_options"]), (list) => {
        const before = print(list);
        const options: unknown = JSON.parse(before).stream_options;
        fc.pre(options === undefined || options === null || (typeof options === "object" && !Array.isArray(options)));
        const after = JSON.parse(edit(askForUsage, before));
        expect(after).toEqual({
          ...JSON.parse(before),
          stream_options: { ...(options as object | null | undefined), include_usage: true },
        });
      }),
    );
  });
});

interface Member {
  readonly key: string;
  /** JSON text. */
  readonly value: string;
  readonly space: string;
}

/** Members of an object as a client may write them: repeated keys, odd spacing, any value. */
function members(likelyKeys: readonly string[]): fc.Arbitrary<Member[]> {
  const plain = fc.string({ unit: "grapheme" }).filter((key) => key !== "__proto__");
  const member = fc.record({
    key: fc.oneof(fc.constantFrom(...likelyKeys), plain),
    value: fc.oneof(fc.json(), fc.constantFrom("{}", "null", '{"include_usage":false}', '"\\\\"')),
    space: fc.constantFrom("", " ", "\n\t", "\r\n"),
  });
  return fc.array(member, { maxLength: 8 });
}

function print(list: readonly Member[]): string {
  const printed = list.map(
    ({ key, value, space }) => `${space}${JSON.stringify(key)}${space}:${space}${value}${space}`,
  );
  return `{${printed.join(",")}}`;
}
