import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

/** Kept: cells of one trace follow each other, and the largest text has many megabytes. */
let last: { readonly path: string; readonly text: string } | undefined;

/** A file of the folder of traces, unpacked. @throws what the file system says. */
export function traceText(traces: string, file: string): string {
  const path = join(traces, file);
  if (last?.path !== path) {
    const bytes = readFileSync(path);
    last = { path, text: (file.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("utf8") };
  }
  return last.text;
}
