import { z } from "zod";
import type { EndpointConfig } from "./config.ts";
import { expectation } from "./expectation.ts";
import type { Environment } from "./interpolation.ts";
import { issueProblems } from "./issue-problems.ts";
import { endpointEntry } from "./pool-schema.ts";
import type { Checked } from "./problem.ts";
import { readSettings } from "./read-settings.ts";
import { writtenIn } from "./written.ts";
import type { SourceFile } from "./yaml-file.ts";

const endpointList = z.array(endpointEntry).superRefine((endpoints, context) => {
  for (const key of ["id", "url"] as const) {
    const first = new Map<string, number>();
    for (const [index, endpoint] of endpoints.entries()) {
      const earlier = first.get(endpoint[key]);
      if (earlier === undefined) first.set(endpoint[key], index);
      else context.addIssue({ code: "custom", path: [index], message: `another ${key} than [${earlier}]` });
    }
  }
});

/** Reads a list of endpoints, each as an entry of `endpoints`, from a YAML or JSON file of its own. It may be empty. */
export function readEndpointList(file: SourceFile, environment: Environment = {}): Checked<readonly EndpointConfig[]> {
  return readSettings(endpointList, { file, environment });
}

/** Reads one endpoint as an entry of `endpoints` has it, from a value at hand. */
export function readEndpoint(value: unknown): Checked<EndpointConfig> {
  const parsed = endpointEntry.safeParse(value, { error: expectation });
  if (parsed.success) return { ok: true, value: parsed.data };
  const written = writtenIn({ schema: endpointEntry, value, yaml: undefined, overrides: new Map() });
  return { ok: false, problems: issueProblems(parsed.error.issues, written) };
}
