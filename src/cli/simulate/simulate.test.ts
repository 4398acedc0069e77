import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { commandLine } from "../../../test/support/command-line.ts";
import { PROGRAM } from "../../../test/support/program.ts";
import type { ReportJson } from "../../sim/index.ts";
import { run } from "../program.ts";

const evenkeel = commandLine(run);

const SMALL = "synthetic:rate=8,requests=60,in=exp(600),out=exp(40)";
const AZURE = [
  "TIMESTAMP,ContextTokens,GeneratedTokens",
  ...Array.from(
    { length: 40 },
    (_, i) => `2023-11-16 18:15:${String(i).padStart(2, "0")}.5000000,${400 + i},${10 + i}`,
  ),
].join("\n");

/** Runs it in this process. */
const simulate = (...args: readonly string[]) => evenkeel(["simulate", "--jobs", "1", ...args]);

async function report(...args: readonly string[]): Promise<ReportJson> {
  const { code, output, errors } = await simulate("--json", "-", ...args);
  expect(errors).toBe("");
  expect(code).toBe(0);
  return JSON.parse(output);
}

function fileWith(content: string | Buffer, name: string): string {
  const path = join(mkdtempSync(join(tmpdir(), "evenkeel-")), name);
  writeFileSync(path, content);
  return path;
}

describe("evenkeel simulate", () => {
  it("prints a row per policy, compared to the default one", async () => {
    const { code, output } = await simulate("--trace", SMALL, "--policies", "least_delay,random,lmetric");
    expect(code).toBe(0);
    for (const policy of ["least_delay", "random", "lmetric"]) expect(output).toMatch(new RegExp(`^${policy} `, "m"));
    expect(output).toContain("/ least_delay");
  });

  it("prints nothing but JSON where JSON goes to standard output", async () => {
    const { policies, command, slo } = await report(
      "--trace",
      SMALL,
      "--policies",
      "random",
      "--slo",
      "ttft=1s,tpot=20ms",
    );
    expect(policies).toMatchObject([{ policy: "random", requests: 60, ended: 60 }]);
    expect(slo).toEqual({ ttftMs: 1000, tpotMs: 20 });
    expect(command).toBe(
      `evenkeel simulate --jobs 1 --json - --trace '${SMALL}' --policies random --slo ttft=1s,tpot=20ms`,
    );
  });

  it("reads traces that are packed, cuts them and speeds them up", async () => {
    const plain = await report("--trace", fileWith(AZURE, "a.csv"), "--policies", "random");
    const packed = await report("--trace", fileWith(gzipSync(AZURE), "a.csv.gz"), "--policies", "random");
    expect(packed.policies[0]).toMatchObject({ requests: 40, ttftMs: plain.policies[0]?.ttftMs });
    const cut = ["--start", "10s", "--duration", "20s", "--requests", "15", "--rate", "2"];
    const [part] = (await report("--trace", fileWith(AZURE, "a.csv"), "--policies", "random", ...cut)).policies;
    expect(part).toMatchObject({ workload: "a.csv x2", requests: 15 });
  });

  it("runs each seed, and puts their requests together", async () => {
    const { policies } = await report("--trace", SMALL, "--policies", "random,round_robin", "--seed", "1,2,3");
    expect(policies).toMatchObject([
      { policy: "random", requests: 180 },
      { policy: "round_robin", requests: 180 },
    ]);
  });

  it("simulates failures, joins and several balancers, and says what was lost", async () => {
    const { code, errors } = await simulate(
      ...["--trace", "synthetic:rate=30,requests=600,out=exp(300)", "--policies", "least_connections"],
      ...["--events", "fail h100-1 at 5s, recover h100-1 at 8s, join llama8b-h100 at 9s", "--replicas", "2"],
    );
    expect(code).toBe(0);
    expect(errors).toMatch(/^note: least_connections: \d+ of 600 requests were lost with their endpoint\.\n$/);
  });

  it("lets balancers tell each other of their work, and says so", async () => {
    const path = join(mkdtempSync(join(tmpdir(), "evenkeel-")), "report.html");
    const args = ["--trace", SMALL, "--policies", "least_delay", "--replicas", "4", "--exchange", "200ms"];
    const { code } = await simulate(...args, "--html", path);
    expect(code).toBe(0);
    expect(readFileSync(path, "utf8")).toContain("4, requests dealt in turn, exchanging every 200 ms");
  });

  it("finds the largest rate", async () => {
    const trace = "synthetic:rate=20,requests=300,in=exp(2000),out=exp(200)";
    const { output } = await simulate("--trace", trace, "--policies", "least_delay", "--sweep", "rate=0.1..40/13.3");
    expect(output).toMatch(/^policy +rate +good %/);
    expect(output).toMatch(/Largest rate with 90 % goodput\npolicy +rate\nleast_delay +x0.1/);
  });

  it("finds how many endpoints are needed", async () => {
    const sweep = ["--fleet", "llama8b-a100", "--sweep", "endpoints=1..4"];
    const { sweep: swept } = await report("--trace", SMALL, "--policies", "least_delay", ...sweep);
    expect(swept).toMatchObject({ variable: "endpoints", capacities: [{ policy: "least_delay", value: 1 }] });
  });

  it("writes a page that stands alone", async () => {
    const path = join(mkdtempSync(join(tmpdir(), "evenkeel-")), "report.html");
    const { code, output } = await simulate("--trace", SMALL, "--policies", "random,least_delay", "--html", path);
    expect(code).toBe(0);
    expect(output).toContain("least_delay");
    expect(readFileSync(path, "utf8")).toMatch(/^<!doctype html>[\s\S]*uPlot[\s\S]*<\/html>\n$/);
  });

  it("prints Markdown when asked", async () => {
    const { output } = await simulate("--trace", SMALL, "--policies", "random", "--markdown");
    expect(output).toMatch(/^\| Policy \| /);
  });

  it.each([
    [["--fleet", "3*abacus"], /Unknown engine profile "abacus"; known profiles: llama8b-h100, /],
    [["--policies", "fastest"], /Unknown policy "fastest"; known are all, own, peers, least_delay, /],
    [["--slo", "ttft=2"], /Expected both limits, such as ttft=2s,tpot=50ms/],
    [["--seed", "1,x"], /Expected whole numbers with commas between them/],
    [["--rate", "0"], /Expected a number above 0/],
    [["--requests", "1.5"], /Expected a whole number of at least 1/],
    [["--duration", "10"], /Expected a time above 0, such as 250ms/],
    [["--sessions", "9..1"], /Expected two whole numbers, such as 100..199/],
    [["--sweep", "speed=1..2"], /is no sweep; expected rate=FROM..TO/],
    [["--sweep", "endpoints=1..4"], /a fleet of one kind only/],
    [["--sweep", "rate=1..4", "--rate", "2"], /--rate and --sweep rate=... exclude each other/],
    [["--events", "fail h100-9 at 3s"], /there is no endpoint "h100-9" at 3s; there are h100-1, /],
    [["--exchange", "200ms"], /--exchange is about several balancers/],
    [["--model", "m"], /--sessions, --session-gap and --model are about files/],
    [["--base", "lmetric"], /--base lmetric is not among the policies least_delay, /],
  ])("takes %j for a command line it does not understand, and says why", async (args, message) => {
    const { code, errors, output } = await simulate(...args);
    expect(code).toBe(2);
    expect(errors).toMatch(message);
    expect(errors).toContain("See evenkeel simulate --help");
    expect(output).toBe("");
  });

  it.each([
    ["/nonexistent.csv", /^error: cannot open \/nonexistent.csv: there is no such file or folder\n$/],
    [tmpdir(), /^error: cannot read .*: it is a folder\n$/],
    ["synthetic:rate=0", /^error: synthetic:rate=0: rate: expected requests per second, above 0/],
    [fileWith("hello\n", "x.csv"), /^error: .*x.csv: line 1: expected /],
    [fileWith(Buffer.from([0x1f, 0x8b, 1, 2, 3]), "x.gz"), /^error: .*x.gz: no gzip file, or a broken one\n$/],
  ])("says what is wrong with the trace %s", async (trace, message) => {
    const { code, errors, output } = await simulate("--trace", trace);
    expect(errors).toMatch(message);
    expect([code, output]).toEqual([1, ""]);
  });

  it("says when nothing is left of a trace, and when an option means nothing for it", async () => {
    const path = fileWith(AZURE, "a.csv");
    expect((await simulate("--trace", path, "--start", "1h")).errors).toContain("no requests in what was asked for");
    expect((await simulate("--trace", path, "--sessions", "1..2")).errors).toContain(
      "sessions means nothing for a trace",
    );
  });

  it("says where it cannot write", async () => {
    const { code, errors } = await simulate("--trace", SMALL, "--policies", "random", "--html", "/nonexistent/r.html");
    expect(errors).toBe("error: cannot open /nonexistent/r.html: there is no such file or folder\n");
    expect(code).toBe(1);
  });

  it("gives the same in several processes as in one", async () => {
    const args = ["--trace", SMALL, "--policies", "random,least_delay,lmetric", "--seed", "1,2"];
    const inProcesses = ["simulate", "--jobs", "2", "--json", "-", ...args];
    const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, ...inProcesses]);
    const figures = ({ policies }: ReportJson) => policies.map((policy) => ({ ...policy, wallMs: 0 }));
    expect(figures(JSON.parse(stdout))).toEqual(figures(await report(...args)));
  });
});
