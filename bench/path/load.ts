import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { EventCount } from "./event-client.ts";
import { messageOf } from "./forked.ts";
import type { ClientSettings } from "./peer.ts";
import { WORKLOAD } from "./workload.ts";
import { runWrk, WRK_ERRORS, WRK_ERRORS_FORMAT, WRK_REQUEST, WRK_SUMMARY, type WrkErrors, wrkProblems } from "./wrk.ts";

/** What a phase delivered. */
export interface Delivered {
  /** Answers or events that came whole. */
  readonly count: number;
  readonly seconds: number;
  /** What went wrong; empty: nothing did. */
  readonly problems: readonly string[];
}

/** The client of the request phase: wrk, one thread. */
export class RequestLoad {
  readonly #scriptFile: string;

  private constructor(scriptFile: string) {
    this.#scriptFile = scriptFile;
  }

  static async create(directory: string): Promise<RequestLoad> {
    const scriptFile = join(directory, "wrk.lua");
    await writeFile(scriptFile, SCRIPT);
    return new RequestLoad(scriptFile);
  }

  /** Keeps all connections busy for `seconds`. @param client Where it differs from the workload. */
  async run(port: number, seconds: number, client: Partial<ClientSettings> = {}): Promise<Delivered> {
    const { connections = WORKLOAD.connections, headers = {} } = client;
    const run = { scriptFile: this.#scriptFile, threads: 1, connections, seconds, port, headers };
    const { requests, durationUs, errors } = await runWrk<WrkSummary>(run);
    return { count: requests, seconds: durationUs / 1e6, problems: wrkProblems(errors) };
  }
}

interface WrkSummary {
  readonly requests: number;
  readonly durationUs: number;
  readonly errors: WrkErrors;
}

const SCRIPT = `${WRK_REQUEST}
done = function(summary)
  local e = summary.errors
  io.write(string.format('${WRK_SUMMARY}{"requests":%d,"durationUs":%d,${WRK_ERRORS_FORMAT}}',
    summary.requests, summary.duration, ${WRK_ERRORS}))
end
`;

/** The client of the event phase: all streams once, from the first event to the last. */
export async function runStreams(
  port: number,
  streams: number = WORKLOAD.streams,
  headers: ClientSettings["headers"] = {},
): Promise<Delivered> {
  const args = [String(port), String(streams), JSON.stringify(headers)];
  const client = new URL("./event-client.ts", import.meta.url);
  const { events, seconds, problems } = await messageOf<EventCount>(client, ...args);
  return { count: events, seconds, problems };
}
