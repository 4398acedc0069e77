import { describe, expect, it } from "vitest";
import { loadConfig, readConfig } from "./load-config.ts";
import { formatProblem, type Problem } from "./problem.ts";
import type { Sources } from "./read-settings.ts";

const file = (text: string) => ({ name: "evenkeel.yaml", text });

function problemsOf(sources: Sources): readonly Problem[] {
  const read = readConfig(sources);
  return read.ok ? [] : read.problems;
}

function reportOf(text: string, environment = {}): string {
  return `\n${problemsOf({ file: file(text), environment })
    .map(formatProblem)
    .join("\n")}\n`;
}

describe("the report of a bad configuration", () => {
  it("names everything that is wrong with values, in the order of the file", () => {
    const text = `
listen: 8080
polcy: round_robin
policy: { name: token_aware, horizonSeconds: 0, horizon: 3 }
failover: { attempts: "\${ATTEMPTS}" }
timeouts:
  idle: 60 sec
  connect: 0s
limits: { bodyBytes: 64M }
sessionKey: [cookie:session]
passthrough: [/metrics]
health:
endpoints:
  - http://user:hunter2@a:8000
  - ::1
  - { url: b:8000, weight: -1, apikey: sk-123 }
  - { url: c:8000, weight: .nan, apiKey: "two words" }
  - { url: d:8000, weight: "3", engine: vlm }
`;
    expect(reportOf(text, { ATTEMPTS: "17" })).toMatchInlineSnapshot(`
      "
      evenkeel.yaml:2:9: listen is 8080, expected host:port such as 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080
      evenkeel.yaml:3:1: polcy is not a setting, expected policy
      evenkeel.yaml:4:46: policy.horizonSeconds is 0, expected a number of at least 0.1
      evenkeel.yaml:4:49: policy.horizon is not a setting, expected one of prefillWeight, decodeWeight, line, horizonSeconds, name
      evenkeel.yaml:5:23: failover.attempts is the value of \${ATTEMPTS}, expected a number of at most 16
      evenkeel.yaml:7:9: timeouts.idle is "60 sec", expected a duration such as 250ms, 30s or 10m, or off
      evenkeel.yaml:8:12: timeouts.connect is "0s", expected a duration above zero and at most 596h
      evenkeel.yaml:9:22: limits.bodyBytes is "64M", expected a size such as 64MiB, 10MB or 65536
      evenkeel.yaml:10:14: sessionKey[0] is "cookie:session", expected header:NAME or body:PATH, such as header:x-session-id or body:metadata.user_id
      evenkeel.yaml:11:15: passthrough[0] is "/metrics", expected a path that does not control or inspect an engine
      evenkeel.yaml:12:8: health is empty, expected a mapping
      evenkeel.yaml:14:5: endpoints[0] is "http://***@a:8000", expected a URL without user name and password; a key goes into apiKey
      evenkeel.yaml:15:5: endpoints[1] is "::1", expected an IPv6 address in brackets, such as http://[::1]:8000
      evenkeel.yaml:16:28: endpoints[2].weight is -1, expected a number of at least 0
      evenkeel.yaml:16:32: endpoints[2].apikey is not a setting, expected apiKey
      evenkeel.yaml:17:28: endpoints[3].weight is NaN, expected a number
      evenkeel.yaml:17:42: endpoints[3].apiKey is (hidden), expected a key without spaces and line ends
      evenkeel.yaml:18:28: endpoints[4].weight is "3", expected a number
      evenkeel.yaml:18:41: endpoints[4].engine is "vlm", expected one of auto, vllm, sglang, tgi, llamacpp, ollama, trtllm, lmdeploy, evenkeel, openai
      "
    `);
  });

  it("names what does not fit together, over whatever else is wrong", () => {
    const text = `
listen: 127.0.0.1:9090
endpoints: [a:1]
pools:
  - name: small
    models: [s, t]
    aliases: { fast: s, faster: fast, t: s, lost: nowhere }
    endpoints:
      - a:1
      - http://A:1/
      - { url: b:1, id: a:1, models: [other], weight: -1 }
  - name: small
    models: [s]
    aliases: { fast: s }
    endpoints: []
  - endpoints: [c:1]
    aliases: { later: discovered }
`;
    expect(reportOf(text)).toMatchInlineSnapshot(`
      "
      evenkeel.yaml:3:12: endpoints is a list, expected nothing here: it goes into a pool, as there are \`pools\`
      evenkeel.yaml:7:33: pools[0].aliases.faster is "fast", expected a model, not another alias
      evenkeel.yaml:7:42: pools[0].aliases.t is "s", expected a name that nothing else has (pools[0].models[1] has it)
      evenkeel.yaml:7:51: pools[0].aliases.lost is "nowhere", expected a model of its pool
      evenkeel.yaml:10:9: pools[0].endpoints[1] is "http://A:1/", expected a URL that the pool does not have yet (pools[0].endpoints[0].url has it)
      evenkeel.yaml:11:25: pools[0].endpoints[2].id is "a:1", expected an id of its own in the pool (pools[0].endpoints[0].id has it)
      evenkeel.yaml:11:39: pools[0].endpoints[2].models[0] is "other", expected a model of its pool
      evenkeel.yaml:11:55: pools[0].endpoints[2].weight is -1, expected a number of at least 0
      evenkeel.yaml:12:11: pools[1].name is "small", expected a name no other pool has (pools[0].name has it)
      evenkeel.yaml:13:14: pools[1].models[0] is "s", expected a model no other pool has (pools[0].models[0] has it)
      evenkeel.yaml:14:22: pools[1].aliases.fast is "s", expected a name that nothing else has (pools[0].aliases.fast has it)
      evenkeel.yaml:15:16: pools[1].endpoints is an empty list, expected at least one endpoint (or discovery)
      evenkeel.yaml:16:5: pools[2].name is missing, expected up to 64 of letters, digits and . _ -
      evenkeel.yaml: admin is 127.0.0.1:9090 by default, expected another address than listen
      "
    `);
  });

  it("names variables that are missing or malformed, and does not complain about their values", () => {
    const text = `
failover: { attempts: "\${ATTEMPTS}" }
endpoints:
  - { url: "http://\${HOST}:8000", apiKey: "prefix-\${KEY" }
  - \${URL}
`;
    expect(reportOf(text)).toMatchInlineSnapshot(`
      "
      evenkeel.yaml:2:23: failover.attempts is \${ATTEMPTS}, expected the variable ATTEMPTS to be set
      evenkeel.yaml:4:12: endpoints[0].url is \${HOST}, expected the variable HOST to be set
      evenkeel.yaml:4:43: endpoints[0].apiKey is text with a \${ that begins no variable, expected \${NAME} or \${NAME:-default}, or $\${ for a plain \${
      evenkeel.yaml:5:5: endpoints[1] is \${URL}, expected the variable URL to be set
      "
    `);
  });

  it("says what to mend in a text that is no such file", () => {
    const anchors = "bcdefgh".replace(/./g, (k) => `${k}: &${k} [${"*a,".repeat(99)}*a]\n`);
    const texts = {
      "an empty file": "",
      "a list": "- endpoints",
      "a tab": "health:\n\tpath: /x",
      "a key twice": "passthrough: []\npassthrough: []",
      "IPv6 without quotes": "listen: [::1]:8080",
      "a variable inside brackets": `endpoints: [\${URL}]`,
      "a colon inside a value": "listen: host: 8080",
      "two documents": "passthrough: []\n---\npassthrough: []",
      "an unknown tag": "listen: !secret 3\nendpoints: [a:1]",
      "an alias without anchor": "endpoints: *all",
      "multiplying aliases": `a: &a [1]\n${anchors}endpoints: [*h]`,
    };
    const reports = Object.entries(texts).map(([what, text]) => [what, reportOf(text).trim()]);
    expect(Object.fromEntries(reports)).toMatchInlineSnapshot(`
      {
        "IPv6 without quotes": "evenkeel.yaml:1:14: something out of place, expected YAML, with quotes around text that begins with [ { ] } & or *",
        "a colon inside a value": "evenkeel.yaml:1:9: a key inside a value, expected the key on a line of its own, or quotes around text with a colon",
        "a key twice": "evenkeel.yaml:2:1: a key that was there before, expected each key once",
        "a list": "evenkeel.yaml: a list, expected a mapping",
        "a tab": "evenkeel.yaml:2:1: a tab, expected spaces as indentation",
        "a variable inside brackets": "evenkeel.yaml:1:14: something unfinished, expected a closing quote or bracket, and quotes around \${NAME} inside brackets",
        "an alias without anchor": "evenkeel.yaml: an alias without its anchor, or too many, expected each alias after its anchor",
        "an empty file": "evenkeel.yaml: endpoints is missing, expected at least one endpoint (or discovery, or pools)",
        "an unknown tag": "evenkeel.yaml:1:9: a tag, expected a plain value, or quotes around text that begins with !
      evenkeel.yaml:1:17: listen is "3", expected host:port such as 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080",
        "multiplying aliases": "evenkeel.yaml: an alias without its anchor, or too many, expected each alias after its anchor",
        "two documents": "evenkeel.yaml:2:1: a second document, expected one document in a file",
      }
    `);
  });

  it("says which flag or variable was wrong", () => {
    const problems = problemsOf({
      environment: { EVENKEEL_LOG_LEVEL: "loud" },
      flags: { "--endpoint": ["a:1", "b"], "--failover-attempts": "many" },
    });
    expect(problems.map(formatProblem)).toMatchInlineSnapshot(`
      [
        "--endpoint: endpoints[1] is "b", expected an http:// or https:// URL, or host:port",
        "--failover-attempts: failover.attempts is "many", expected a number",
        "EVENKEEL_LOG_LEVEL: log.level is "loud", expected one of trace, debug, info, warn, error, fatal, silent",
      ]
    `);
  });

  it("does not mend a section that is wrong by a flag that fits", () => {
    const problems = problemsOf({ file: file("endpoints: [a:1]\ntimeouts: 3"), flags: { "--timeouts-idle": "1s" } });
    expect(problems.map(formatProblem)).toEqual(["evenkeel.yaml:2:11: timeouts is 3, expected a mapping"]);
  });

  it("says that a file cannot be read", () => {
    expect(loadConfig("/nonexistent/evenkeel.yaml", {})).toEqual({
      ok: false,
      problems: [
        {
          path: "",
          source: "/nonexistent/evenkeel.yaml",
          found: "not readable (ENOENT)",
          expected: "a YAML file",
        },
      ],
    });
  });
});
