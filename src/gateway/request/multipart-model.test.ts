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

  const MODEL = field('name="model"', "m");

  it.each([
    ["two of them", MODEL + MODEL],
    ["another that is named in the extended form", MODEL + field("name*=utf-8''model", "x")],
    ["another that is named twice", MODEL + field('name="a"; name="model"', "x")],
    ["another with a space behind its name", MODEL + field('name ="model"', "x")],
    ["another with an escape in its name", MODEL + field('name="mo\\del"', "x")],
    ["another in a folded line", MODEL + field('\r\n name="model"', "x")],
    ["another with two dispositions", MODEL + field('name="a"\r\nContent-Disposition: form-data; name="model"', "x")],
    ["another of another kind", MODEL + field('name="model"', "x").replace("form-data", "attachment")],
    ["another behind an open quote", MODEL + field('name="a"; filename="x; name="model"', "x")],
    ["another whose head is very long", MODEL + field(`name="a"; x="${"a".repeat(9_000)}"`, "x")],
    ["a part without a disposition", `${MODEL}--b1\r\nX: y\r\n\r\nx\r\n`],
    ["more behind the boundary", `${MODEL}--b1x\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n`],
    ["more parts than forms have", MODEL + field('name="a"', "x").repeat(200)],
  ])("does not say which of them it is with %s", (_what, parts) => {
    expect(modelIn(`${parts}--b1--`)).toBeUndefined();
  });

  it.each([
    ['name="file"; filename="my model.wav"'],
    ['name="file"; filename="a; name=b"'],
    ["name=file; filename=x.wav; filename*=utf-8''x.wav"],
    ['name="file"; filename=""'],
    ['name="timestamp_granularities[]"'],
  ])("is not put off by a part with %s", (disposition) => {
    expect(modelIn(`${field(disposition, "x")}${MODEL}--b1--`)).toBe("m");
  });

  it.each([
    ['multipart/form-data; boundary="b1"', "m"],
    ['multipart/form-data; x="; boundary=b1"; boundary=b2', undefined],
    ["multipart/form-data; boundary=b1; boundary=b2", undefined],
    ["multipart/form-data; boundary=b1; boundary*=b2", undefined],
    ["multipart/form-data; boundary=b1; boundary*0=b2", undefined],
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
