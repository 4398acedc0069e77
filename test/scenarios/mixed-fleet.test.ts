import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { type Comparison, comparePolicies, tableOf } from "../../bench/policies.ts";

describe("a fleet of unequal speed under heavy-tailed prompts", () => {
  let comparisons: readonly Comparison[] = [];

  // Seconds on an idle core; more where others share it.
  beforeAll(() => {
    comparisons = comparePolicies();
  }, 60_000);

  it("fares as docs/policies/README.md says, to the millisecond", () => {
    const page = readFileSync(new URL("../../docs/policies/README.md", import.meta.url), "utf8");
    const [table] = /^\| Policy \| TTFT mean .*(?:\n\|.*)*/m.exec(page) ?? [];
    expect(table).toBe(tableOf(comparisons));
  });

  it.each(["token_aware", "least_delay"])("serves faster under %s than under rules that count requests", (name) => {
    for (const rule of ["round_robin", "least_connections"]) {
      expect(under(name).ttftP99Ms).toBeLessThan(under(rule).ttftP99Ms);
      expect(under(name).endToEndMeanMs).toBeLessThan(under(rule).endToEndMeanMs);
    }
  });

  it("has the lowest mean times under the default policy", () => {
    for (const other of comparisons) {
      expect(under("least_delay").ttftMeanMs).toBeLessThanOrEqual(other.ttftMeanMs);
      expect(under("least_delay").endToEndMeanMs).toBeLessThanOrEqual(other.endToEndMeanMs);
    }
  });

  it.each(["least_delay", "token_aware", "session_affinity", "power_of_two", "least_connections"])(
    "sends the slowest endpoint far less than a fast one under %s, without weights",
    (name) => {
      const { quarter = 0, "fast-1": first = 0, "fast-2": second = 0 } = under(name).shares;
      expect(2 * quarter).toBeLessThan(Math.min(first, second));
    },
  );

  function under(name: string): Comparison {
    const found = comparisons.find(({ policy }) => policy === name);
    if (found === undefined) throw new RangeError(`no policy ${name}`);
    return found;
  }
});
