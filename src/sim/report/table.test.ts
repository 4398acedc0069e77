import { describe, expect, it } from "vitest";
import { record, refusedRecord, resultOf } from "../../../test/support/request-records.ts";
import { summarize } from "./summary.ts";
import { formatSummaryMarkdown, formatSummaryTable } from "./table.ts";

const SLO = { ttftMs: 200, tpotMs: 50 };
const fast = summarize(resultOf([record({ cachedTokens: 50 })], { policy: "least_delay", preemptions: 3 }), SLO);
const slow = summarize(
  resultOf([record({ firstTokenAtMs: 1180 }), refusedRecord()], { policy: "round_robin", preemptions: 12 }),
  SLO,
);
const lost = summarize(resultOf([refusedRecord()], { policy: "x" }), SLO);

describe("formatSummaryTable", () => {
  it("aligns figures under their titles and stars the best of each column", () => {
    expect(formatSummaryTable([fast, slow])).toMatchInlineSnapshot(`
      "                    TTFT ms         TPOT ms      E2E s                                       Spread
      policy      good %  mean  p50  p99  mean   p99   mean    p99  tok/s  hit %  hold s  preempt  work
      least_delay  100.0*  100* 100* 100* 10.0  10.0  0.190  0.190     53   50.0*      0        3* 2.00
      round_robin   50.0   180  180  180  1.11* 1.11* 0.190  0.190     53    0.0       0       12  2.00
      "
    `);
  });

  it("compares with a base where asked", () => {
    expect(formatSummaryTable([fast, slow], { base: "round_robin" }).split("\n").slice(5)).toMatchInlineSnapshot(`
      [
        "/ round_robin good %   mean    p50    p99   mean    p99   mean    p99  tok/s  hit %  hold s  preempt  work",
        "least_delay    +50.0  0.56x  0.56x  0.56x  9.00x  9.00x  1.00x  1.00x  1.00x  +50.0",
        "round_robin      0.0  1.00x  1.00x  1.00x  1.00x  1.00x  1.00x  1.00x  1.00x    0.0",
        "",
      ]
    `);
  });

  it("shows a dash for what does not exist", () => {
    expect(formatSummaryTable([lost]).split("\n")[2]?.split(/ +/).slice(0, 4)).toEqual(["x", "0.0", "-", "-"]);
  });

  it("stars nothing where all are equal", () => {
    expect(formatSummaryTable([fast, { ...fast, policy: "twin" }])).not.toContain("*");
  });

  it("refuses a base that was not simulated", () => {
    expect(() => formatSummaryTable([fast], { base: "random" })).toThrow("No result of the base policy random");
  });
});

describe("formatSummaryMarkdown", () => {
  it("is a table with the best in bold, and a second one against the base", () => {
    expect(formatSummaryMarkdown([fast, slow], { base: "round_robin" })).toMatchInlineSnapshot(`
      "| Policy | good % | TTFT ms, mean | p50 | p99 | TPOT ms, mean | p99 | E2E s, mean | p99 | tok/s | hit % | hold s | preempt | Spread, work |
      | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
      | \`least_delay\` | **100.0** | **100** | **100** | **100** | 10.0 | 10.0 | 0.190 | 0.190 | 53 | **50.0** | 0 | **3** | 2.00 |
      | \`round_robin\` | 50.0 | 180 | 180 | 180 | **1.11** | **1.11** | 0.190 | 0.190 | 53 | 0.0 | 0 | 12 | 2.00 |

      | Against \`round_robin\` | good % | TTFT ms, mean | p50 | p99 | TPOT ms, mean | p99 | E2E s, mean | p99 | tok/s | hit % | hold s | preempt | Spread, work |
      | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
      | \`least_delay\` | +50.0 | 0.56x | 0.56x | 0.56x | 9.00x | 9.00x | 1.00x | 1.00x | 1.00x | +50.0 |  |  |  |
      | \`round_robin\` | 0.0 | 1.00x | 1.00x | 1.00x | 1.00x | 1.00x | 1.00x | 1.00x | 1.00x | 0.0 |  |  |  |
      "
    `);
  });

  it("keeps a name from breaking the table", () => {
    expect(formatSummaryMarkdown([{ ...fast, policy: "a|b" }])).toContain("| `a\\|b` |");
  });
});
