import { debianProgram } from "../support/install.ts";
import { runToEnd } from "../support/managed-process.ts";
import { PATH, requestBody } from "./workload.ts";

/** How wrk is run. */
export interface WrkRun {
  /** Lua; its `done` writes `WRK_SUMMARY` and an object as JSON behind it. */
  readonly scriptFile: string;
  readonly threads: number;
  readonly connections: number;
  readonly seconds: number;
  readonly port: number;
  /** Beside those of every load; undefined: none. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What precedes a script's summary in the output. */
export const WRK_SUMMARY = "summary:";

/** Lua that every script of a load begins with: the request is the one of the workload. */
export const WRK_REQUEST: string = `
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = [==[${requestBody(false)}]==]
`;

/** Lua for a format of `string.format` and its arguments: what went wrong, as `WrkErrors`. */
export const WRK_ERRORS_FORMAT = '"errors":{"connect":%d,"read":%d,"write":%d,"timeout":%d,"status":%d}';
export const WRK_ERRORS = "e.connect, e.read, e.write, e.timeout, e.status";

/** How often which kind of error came. */
export type WrkErrors = Readonly<Record<"connect" | "read" | "write" | "timeout" | "status", number>>;

/** Runs wrk to its end. @returns the script's summary. */
export async function runWrk<Summary>(run: WrkRun): Promise<Summary> {
  const { scriptFile, threads, connections, seconds, port, headers = {} } = run;
  const output = await runToEnd({
    file: await debianProgram("wrk", "wrk"),
    args: [
      `--threads=${threads}`,
      `--connections=${connections}`,
      `--duration=${seconds}s`,
      `--script=${scriptFile}`,
      ...Object.entries(headers).map(([name, value]) => `--header=${name}: ${value}`),
      `http://127.0.0.1:${port}${PATH}`,
    ],
  });
  return JSON.parse(output.slice(output.lastIndexOf(WRK_SUMMARY) + WRK_SUMMARY.length)) as Summary;
}

/** One sentence per kind of error that came. */
export function wrkProblems(errors: WrkErrors): string[] {
  return Object.entries(errors)
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => `${count} ${kind} errors`);
}
