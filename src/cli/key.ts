import { createHash, randomBytes } from "node:crypto";
import { Command } from "commander";
import { EXIT } from "./report.ts";
import type { Terminal } from "./terminal.ts";

/** `evenkeel key`: makes a key for a client or an operator. @param done Takes the exit code. */
export function keyCommand(terminal: Terminal, done: (code: number) => void): Command {
  const command = new Command("key")
    .summary("make a key for a client or an operator")
    .description("Makes a random key and prints it, with the hash that goes into the configuration in its place.")
    .option("--hash", "Print the hash of the key on standard input instead.")
    .option("--json", "Print one JSON object.")
    .addHelpText("after", KEY_EXAMPLES);
  command.action(async () => {
    const { hash: onlyHash, json: asJson } = command.opts<{ readonly hash?: true; readonly json?: true }>();
    const key = onlyHash ? (await terminal.readInput()).replace(/\r?\n$/, "") : newKey();
    if (!SENDABLE.test(key)) {
      terminal.writeError("error: expected a key on standard input: one line, without spaces\n");
      return done(EXIT.failed);
    }
    const hash = hashOf(key);
    if (asJson) terminal.write(`${JSON.stringify(onlyHash ? { hash } : { key, hash })}\n`);
    else terminal.write(onlyHash ? `${hash}\n` : report(key, hash));
    done(EXIT.ok);
  });
  return command;
}

const KEY_EXAMPLES = `
Examples:
  evenkeel key
  printf %s "$KEY" | evenkeel key --hash

A client sends the key as \`Authorization: Bearer KEY\` or as \`x-api-key: KEY\`.`;

/** What a header can carry as a key. */
const SENDABLE = /^\S+$/;

/** As hard to guess as its hash; the beginning tells what it is when it is found where it should not be. */
function newKey(): string {
  return `ek-${randomBytes(32).toString("base64url")}`;
}

function hashOf(key: string): string {
  return `sha256:${createHash("sha256").update(key).digest("hex")}`;
}

function report(key: string, hash: string): string {
  return `key   ${key}
hash  ${hash}

The key is shown this once and is stored nowhere. Into the configuration goes its hash:

keys:
  - id: NAME
    hash: ${hash}
`;
}
