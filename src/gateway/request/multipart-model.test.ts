import { describe, expect, it } from "vitest";
import { findMultipartModel } from "./multipart-model.ts";

const field = (disposition: string, value: string): string =>
  `--b1\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${value}\r\n`;

function modelIn(body: string, contentType = "multipart/form-data; boundary=b1"): string | undefined {
  const bytes = Buffer.from(body);
  const range = findMultipartModel(contentType, bytes);
  return range && bytes.toString("utf8", range.from, range.to);
}

describe("findMultipartModel", () => {
  it.each([
    ["first", `${field('name="model"', "m")}${field('name="a"', "x")}--b1--`, "m"],
    ["last", `${field('name="a"', "x")}${field('name="model"', "größe")}--b1--`, "größe"],
    ["behind a preamble", `preamble\r\n${field('name="model"', "m")}--b1--`, "m"],
    ["with an unquoted name", `${field("name=model", "m")}--b1--`, "m"],
    [
      "with more lines in its head",
      `${field('name="model"', "m").replace("\r\n\r\n", "\r\nContent-Type: text/plain\r\n\r\n")}--b1--`,
      "m",
    ],
    ["empty", `${field('name="model"', "")}--b1--`, ""],
    ["of two lines", `${field('name="model"', "a\r\nb")}--b1--`, "a\r\nb"],
  ])("finds the field %s", (_where, body, model) => {
    expect(modelIn(body)).toBe(model);
  });

  it.each([
    ["a field that is called otherwise", `${field('name="models"', "m")}${field('name="my model"', "m")}--b1--`],
    ["a file that is called so", `${field('name="file"; filename="model"', "m")}--b1--`],
    ["text that looks like one", `${field('name="a"', 'Content-Disposition: form-data; name="model"\r\n\r\nm')}--b1--`],
    ["a field without an end", field('name="model"', "m").slice(0, -2)],
    ["a head without an end", '--b1\r\nContent-Disposition: form-data; name="model"\r\n'],
    ["nothing", ""],
  ])("does not take %s for it", (_what, body) => {
    expect(modelIn(body)).toBeUndefined();
  });

  it.each([
    ['multipart/form-data; boundary="b1"', "m"],
    ["Multipart/Form-Data; charset=utf-8; BOUNDARY=b1; x=y", "m"],
    ["multipart/form-data", undefined],
    ["multipart/form-data; boundary=", undefined],
    ["application/json; boundary=b1", undefined],
    ["multipart/form-data; boundary=b2", undefined],
  ])("goes by the boundary of %s", (contentType, model) => {
    expect(modelIn(`${field('name="model"', "m")}--b1--`, contentType)).toBe(model);
  });

  it("passes over large files in time linear in their length", () => {
    const body = `${field('name="file"', "\r\n--b".repeat(2_000_000))}${field('name="model"', "m")}--b1--`;
    expect(modelIn(body)).toBe("m");
  });
});
