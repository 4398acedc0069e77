import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import {
  configSchema,
  formatProblem,
  readSettings,
  type Setting,
  settingsOf,
  valuesOf,
} from "../../src/config/index.ts";
import { policyDefinitions } from "../../src/core/index.ts";
import { ROOT } from "../support/install.ts";
import { applied, type Edited, editedText } from "./edits.ts";
import type { FuzzTarget } from "./target.ts";

interface ConfigInput {
  /** The file: a text with changes, or values for settings, written as JSON. */
  readonly file: Edited | readonly SettingValue[];
  readonly environment: readonly SettingValue[];
  readonly flags: readonly SettingValue[];
}

interface SettingValue {
  /** Index among all settings. */
  readonly setting: number;
  readonly value: unknown;
}

/** As `readConfig` does, which makes the schema anew each time. */
const SCHEMA = configSchema(policyDefinitions);
const SETTINGS: readonly Setting[] = valuesOf(settingsOf(SCHEMA));

const EXAMPLES = join(ROOT, "examples");
const FILES: readonly string[] = [
  ...readdirSync(EXAMPLES).map((name) => readFileSync(join(EXAMPLES, name), "latin1")),
  "endpoints: [http://127.0.0.1:8000]\n",
  "pools:\n  - name: a\n    endpoints: [{ url: 'http://h:1', apiKey: abc, weight: 0.5, kvCapacityTokens: 1000 }]\n",
  `endpoints: [{ url: 'http://h:1', apiKey: '\${FUZZ_SECRET}', tls: { ca: ca.pem } }]\ndiscovery: [{ dns: a.b:80, interval: 5s }]\n`,
  `endpoints: [http://h:1]\nkeys: [{ id: a, hash: 'sha256:${"0".repeat(64)}', models: [m], tokensPerMinute: 10 }]\ntls: { cert: a, key: b }\n`,
  "x: &a { url: 'http://h:1' }\nendpoints: [*a, *a]\npolicy: { name: least_delay, tpotTargetMs: 50 }\n",
];
const WORDS = [
  ...[
    "\n",
    "\t",
    "  ",
    "- ",
    ": ",
    ":",
    "{",
    "}",
    "[",
    "]",
    ",",
    "&a ",
    "*a",
    "*b",
    "!!js/function x",
    "!x ",
    "|\n",
    ">\n",
  ],
  ...[
    "'",
    '"',
    "#",
    "---\n",
    "...\n",
    "?",
    "<<: *a",
    `\${HOME}`,
    `\${FUZZ_SECRET}`,
    "${",
    `\${A:-b}`,
    "$${",
    "%YAML 1.2\n",
    "0x1f",
    ".inf",
    ".nan",
  ],
  ...["null", "true", "1e9", "-1", "10s", "off", "weight", "endpoints", "__proto__", "constructor", "\u0000", "\u00ff"],
];

const VALUES = [
  "",
  "0",
  "-1",
  "1e999",
  "10s",
  "5 parsecs",
  "off",
  `\${X}`,
  "http://h:1",
  "127.0.0.1:0",
  "a\nb",
  "null",
];

/** Every configuration is taken, or refused in words that say where and what. */
export const config: FuzzTarget = {
  name: "config files",
  inputs: "YAML files, changed or made of settings, with variables and flags",
  open: async () => {
    const value = fc.oneof(
      fc.constantFrom(...VALUES),
      fc.jsonValue({ maxDepth: 3 }),
      fc.constantFrom(...SETTINGS.flatMap(({ choices, initial }) => [...choices, initial ?? "x"])),
    );
    const settings = (maxLength: number): fc.Arbitrary<SettingValue[]> =>
      fc.array(fc.record({ setting: fc.noBias(fc.nat({ max: SETTINGS.length - 1 })), value }), { maxLength });
    const file = fc.oneof({ weight: 3, arbitrary: editedText(FILES, WORDS) }, { weight: 2, arbitrary: settings(6) });
    return {
      arbitrary: fc.record({ file, environment: settings(2), flags: settings(2) }),
      check: (input) => checkConfig(input as ConfigInput),
      close: async () => {},
    };
  },
};

function checkConfig({ file, environment, flags }: ConfigInput): void {
  const startMs = performance.now();
  const read = readSettings(SCHEMA, {
    file: { name: FILE_NAME, text: "text" in file ? applied(file) : JSON.stringify(treeOf(file)) },
    environment: {
      ...SECRETS,
      ...Object.fromEntries(environment.map(({ setting, value }) => [settingAt(setting).environment, textOf(value)])),
    },
    flags: Object.fromEntries(flags.map(({ setting, value }) => [settingAt(setting).flag, textOf(value)])),
  });
  const tookMs = performance.now() - startMs;
  if (tookMs > SLOW_MS) throw new Error(`reading took ${Math.round(tookMs)} ms`);
  if (read.ok) {
    if (read.value.pools.length === 0) throw new Error("a configuration without a pool was taken");
    return;
  }
  if (read.problems.length === 0) throw new Error("refused without a word");
  for (const problem of read.problems) {
    const text = formatProblem(problem);
    if (problem.found === "" || problem.expected === "") throw new Error(`says not what is wrong: ${text}`);
    if (problem.path === "" && problem.source === undefined) {
      if (!WHOLE.test(text)) throw new Error(`says not where: ${text}`);
    }
    if (text.includes(SECRETS.FUZZ_SECRET)) throw new Error(`shows what a variable holds: ${text}`);
    if (STACK.test(text)) throw new Error(`shows a stack: ${text}`);
  }
}

/** What a variable in the file stands for is never shown, wherever it stands. */
const SECRETS = { FUZZ_SECRET: "hunter2-fuzz" };
const FILE_NAME = "fuzz.yaml";
/** Reading takes a millisecond or two; the rest is for a machine that does other things. */
const SLOW_MS = 1000;
/** What is wrong with the configuration as a whole: it lacks something, so there is no place. */
const WHOLE = /endpoints/;
const STACK = /\n\s+at .*:\d+:\d+|node:internal|\.ts:\d+/;

function settingAt(index: number): Setting {
  return SETTINGS[index] as Setting;
}

function treeOf(values: readonly SettingValue[]): unknown {
  const tree: Record<string, unknown> = { endpoints: ["http://127.0.0.1:8000"] };
  for (const { setting, value } of values) {
    const path = settingAt(setting).path;
    let at: Record<string, unknown> = tree;
    for (const key of path.slice(0, -1)) {
      const inner = at[key];
      at = at[key] = typeof inner === "object" && inner !== null ? (inner as Record<string, unknown>) : {};
    }
    at[path.at(-1) ?? ""] = value;
  }
  return tree;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
