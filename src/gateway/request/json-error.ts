/**
 * Says where a text that JSON.parse refused stops being JSON. JSON.parse's own message has no position for short
 * texts and quotes the body, which belongs neither in logs nor in answers.
 */
export function describeJsonError(text: string): string {
  if (text.trim() === "") return "The body is empty; it must be a JSON object.";
  const at = new JsonScan(text).findError();
  const before = text.slice(0, at);
  const line = before.split("\n").length;
  const column = at - (before.lastIndexOf("\n") + 1) + 1;
  const what = at >= text.length ? "the body ends too early" : "unexpected character";
  return `The body is not valid JSON: ${what} at line ${line}, column ${column} (position ${at}).`;
}

/** `comma` also stands for the end of what is open. */
type Expected = "firstKey" | "key" | "firstValue" | "value" | "comma";

/** Iterative, so that no nesting exhausts the stack. */
class JsonScan {
  readonly #text: string;
  #at = 0;
  /** Open brackets, outermost first. */
  readonly #open: ("{" | "[")[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  /** Index of the first unit that no JSON text can have there; the text's length if it ends too early. */
  findError(): number {
    let expected: Expected | undefined = "value";
    while (expected !== undefined) {
      this.#match(SPACE);
      const char: string | undefined = this.#text[this.#at];
      if (char === undefined) break;
      expected = this.#step(expected, char);
    }
    return this.#at;
  }

  /** Takes what is expected here and says what may follow; undefined: `char` is not it. */
  #step(expected: Expected, char: string): Expected | undefined {
    const mayClose = expected === "comma" || expected === "firstKey" || expected === "firstValue";
    if (mayClose && this.#closes(char)) return "comma";
    switch (expected) {
      case "comma":
        if (this.#open.length === 0 || !this.#match(COMMA)) return undefined;
        return this.#inside("{") ? "key" : "value";
      case "firstKey":
      case "key":
        return this.#readKey() ? "value" : undefined;
      default:
        if (char !== "{" && char !== "[") return this.#readScalar(char) ? "comma" : undefined;
        this.#open.push(char);
        this.#at++;
        return char === "{" ? "firstKey" : "firstValue";
    }
  }

  #inside(bracket: "{" | "["): boolean {
    return this.#open.at(-1) === bracket;
  }

  #closes(char: string): boolean {
    const closes = (char === "}" && this.#inside("{")) || (char === "]" && this.#inside("["));
    if (closes) {
      this.#open.pop();
      this.#at++;
    }
    return closes;
  }

  #readKey(): boolean {
    if (!this.#readString()) return false;
    this.#match(SPACE);
    return this.#match(COLON);
  }

  #readScalar(char: string): boolean {
    return char === '"' ? this.#readString() : this.#match(WORD) || this.#match(NUMBER);
  }

  /** Leaves the position at the offending unit when it fails. */
  #readString(): boolean {
    if (this.#text[this.#at] !== '"') return false;
    this.#at++;
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code === 0x22) {
        this.#at++;
        return true;
      }
      if (code === 0x5c) {
        if (!this.#match(ESCAPE)) return false;
      } else if (code >= 0x20) this.#at++;
      // A control character, or NaN past the end.
      else return false;
    }
  }

  #match(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    if (!pattern.test(this.#text)) return false;
    this.#at = pattern.lastIndex;
    return true;
  }
}

const SPACE = /[ \t\r\n]*/y;
const COLON = /:/y;
const COMMA = /,/y;
const WORD = /true|false|null/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
