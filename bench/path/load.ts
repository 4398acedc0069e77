import { fork } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { debianProgram } from "../support/install.ts";
import { runToEnd } from "../support/managed-process.ts";
import type { EventCount } from "./event-client.ts";
import { PATH, requestBody, WORKLOAD } from "./workload.ts";

/** What a phase delivered. */
export interface Delivered {
  /** Answers or events that came whole. */
  readonly count: number;
  readonly seconds: number;
  /** What went wrong; empty: nothing did. */
  readonly problems: readonly string[];
}

interface WrkSummary {
  readonly requests: number;
  readonly durationUs: number;
  readonly errors: Readonly<Record<string, number>>;
}

/** The client of the request phase: wrk, one thread. */
export class RequestLoad {
  readonly #program: string;
  readonly #script: string;

  private constructor(program: string, script: string) {
    this.#program = program;
    this.#script = script;
  }

  static async create(directory: string): Promise<RequestLoad> {
    const script = join(directory, "wrk.lua");
    await writeFile(script, SCRIPT);
    return new RequestLoad(await debianProgram("wrk", "wrk"), script);
  }

  /** Keeps all connections busy for `seconds`. */
  async run(port: number, seconds: number): Promise<Delivered> {
    const output = await runToEnd({
      file: this.#program,
      args: [
        "--threads=1",
        `--connections=${WORKLOAD.connections}`,
        `--duration=${seconds}s`,
        `--script=${this.#script}`,
        `http://127.0.0.1:${port}${PATH}`,
      ],
    });
    const summary = JSON.parse(output.slice(output.lastIndexOf(MARK) + MARK.length)) as WrkSummary;
    const problems = Object.entries(summary.errors)
      .filter(([, count]) => count > 0)
      .map(([kind, count]) => `${count} ${kind} errors`);
    return { count: summary.requests, seconds: summary.durationUs / 1e6, problems };
  }
}

const MARK = "summary:";

const SCRIPT = `
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = [==[${requestBody(false)}]==]
done = function(summary)
  local e = summary.errors
  io.write(string.format(
    '${MARK}{"requests":%d,"durationUs":%d,"errors":{"connect":%d,"read":%d,"write":%d,"timeout":%d,"status":%d}}',
    summary.requests, summary.duration, e.connect, e.read, e.write, e.timeout, e.status))
end
`;

/** The client of the event phase: all streams once, from the first event to the last. */
export async function runStreams(port: number): Promise<Delivered> {
  const startMs = performance.now();
  const client = fork(new URL("./event-client.ts", import.meta.url), [String(port)]);
  const [count] = (await once(client, "message")) as [EventCount];
  await once(client, "exit");
  return { count: count.events, seconds: (performance.now() - startMs) / 1000, problems: count.problems };
}
