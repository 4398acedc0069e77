import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { gunzipSync } from "node:zlib";
import { readWorkload, takeUntil, type Workload } from "../../src/sim/index.ts";

/** The first `minutes` of a trace, plain or gzip, in any format that docs/traces.md names. @throws when it cannot be read. */
export async function readTrace(file: string, minutes: number): Promise<Workload> {
  const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    throw new Error(`no trace at ${file} (${error.code}). docs/traces.md says where traces are published`);
  });
  const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const text = (isGzip ? gunzipSync(bytes) : bytes).toString("utf8");
  return takeUntil(readWorkload(text, { name: basename(file) }), minutes * 60_000);
}
