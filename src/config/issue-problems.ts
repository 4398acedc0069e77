import type { z } from "zod";
import { formatPath, type Path } from "./path.ts";
import type { Problem } from "./problem.ts";
import type { Written } from "./written.ts";

/** One problem for each thing that zod found wrong. */
export function issueProblems(issues: readonly z.core.$ZodIssue[], written: Written): Problem[] {
  return issues.flatMap(leavesOf).flatMap((issue) => {
    const path = written.within(issue.path.map((key) => (typeof key === "number" ? key : String(key))));
    if (issue.code === "unrecognized_keys") return issue.keys.map((key) => unknownSetting([...path, key], written));
    return [
      {
        path: formatPath(path),
        source: written.sourceOf(path, "value"),
        found: written.show(path) ?? "missing",
        expected: issue.message,
      },
    ];
  });
}

/** The value of an unknown setting is not shown: it may be a secret under a mistyped name. */
function unknownSetting(path: Path, written: Written): Problem {
  const known = written.keysAt(path.slice(0, -1));
  const expected =
    nearest(String(path.at(-1)), known) ?? (known.length === 1 ? `only ${known[0]}` : `one of ${known.join(", ")}`);
  return { path: formatPath(path), source: written.sourceOf(path, "key"), found: "not a setting", expected };
}

/** The issues of the alternative that was meant, where a union has one: that whose outer form fits. */
function leavesOf(issue: z.core.$ZodIssue): z.core.$ZodIssue[] {
  if (issue.code !== "invalid_union") return [issue];
  const meant = issue.errors.find((branch) => branch.length > 0 && !branch.some(isAboutForm));
  if (meant === undefined) return [issue];
  return meant.flatMap((inner) => leavesOf({ ...inner, path: [...issue.path, ...inner.path] }));
}

function isAboutForm({ path, code }: z.core.$ZodIssue): boolean {
  return path.length === 0 && (code === "invalid_type" || code === "invalid_value" || code === "invalid_format");
}

/** Undefined: none is so close that a slip of the hand explains it. */
function nearest(name: string, known: readonly string[]): string | undefined {
  const ranked = known
    .map((candidate) => ({ candidate, distance: editDistance(plain(name), plain(candidate)) }))
    .sort((a, b) => a.distance - b.distance);
  const [best] = ranked;
  return best !== undefined && best.distance <= Math.ceil(best.candidate.length / 4) ? best.candidate : undefined;
}

/** `api_key` and `apikey` are meant as `apiKey`. */
function plain(name: string): string {
  return name.replace(/[_-]/g, "").toLowerCase();
}

/** Levenshtein: least number of letters to insert, remove or replace. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...to].entries()) {
      const replaced = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
