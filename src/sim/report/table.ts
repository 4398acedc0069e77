import { type Cell, COLUMNS, type Column, cellsOf, comparisonOf } from "./columns.ts";
import type { Summary } from "./summary.ts";

/** How to write a table. */
export interface TableOptions {
  /** Policy that the others are compared to, in a second part; undefined: there is none. */
  readonly base?: string | undefined;
}

const BRIEF = COLUMNS.filter(({ isBrief }) => isBrief);

/** A row per policy, for a terminal; `*` marks the best of a column. */
export function formatSummaryTable(summaries: readonly Summary[], options: TableOptions = {}): string {
  const base = findBase(summaries, options.base);
  const columns = BRIEF.map((column) => cellsOf(column, summaries));
  const rows = summaries.map((_, row) => columns.map((cells) => starred(cells[row])));
  const comparisons = base === undefined ? [] : summaries.map((summary) => compareAll(summary, base));
  const widths = BRIEF.map((column, index) =>
    Math.max(column.title.length + 1, ...[...rows, ...comparisons].map((cells) => cells[index]?.length ?? 0)),
  );
  const names = ["policy", ...summaries.map(({ policy }) => policy), ...(base ? [against(base)] : [])];
  const nameWidth = Math.max(...names.map((name) => name.length));
  const line = (name: string, cells: readonly string[]): string =>
    [name.padEnd(nameWidth), ...cells.map((cell, index) => cell.padStart(widths[index] ?? 0))].join(" ").trimEnd();
  const titles = BRIEF.map(({ title }) => `${title} `);
  const lines = [
    `${" ".repeat(nameWidth)}${groupLine(BRIEF, widths)}`.trimEnd(),
    line("policy", titles),
    ...summaries.map(({ policy }, row) => line(policy, rows[row] ?? [])),
  ];
  if (base !== undefined) {
    lines.push("", line(against(base), titles));
    lines.push(...summaries.map(({ policy }, row) => line(policy, comparisons[row] ?? [])));
  }
  return `${lines.join("\n")}\n`;
}

/** The same as Markdown; the best of a column is bold. */
export function formatSummaryMarkdown(summaries: readonly Summary[], options: TableOptions = {}): string {
  const base = findBase(summaries, options.base);
  const columns = BRIEF.map((column) => cellsOf(column, summaries));
  const titles = BRIEF.map(({ group, title }, index) =>
    group !== "" && BRIEF[index - 1]?.group !== group ? `${group}, ${title}` : title,
  );
  const rows = summaries.map(({ policy }, row) => [markdownName(policy), ...columns.map((cells) => bold(cells[row]))]);
  const parts = [markdownTable(["Policy", ...titles], rows)];
  if (base !== undefined) {
    const comparisons = summaries.map((summary) => [
      markdownName(summary.policy),
      ...compareAll(summary, base).map((text) => text.trimEnd()),
    ]);
    parts.push(markdownTable([`Against ${markdownName(base.policy)}`, ...titles], comparisons));
  }
  return parts.join("\n");
}

/** A base that was not simulated is a mistake of the caller. */
function findBase(summaries: readonly Summary[], policy: string | undefined): Summary | undefined {
  if (policy === undefined) return undefined;
  const base = summaries.find((summary) => summary.policy === policy);
  if (base === undefined) throw new RangeError(`No result of the base policy ${policy}`);
  return base;
}

/** The trailing blank stands where others have a star, so that digits stay under digits. */
function starred(cell: Cell | undefined): string {
  return cell === undefined ? "" : `${cell.text}${cell.isBest ? "*" : " "}`;
}

function bold(cell: Cell | undefined): string {
  if (cell === undefined) return "";
  return cell.isBest ? `**${cell.text}**` : cell.text;
}

function compareAll(summary: Summary, base: Summary): string[] {
  return BRIEF.map((column) => `${comparisonOf(column, summary, base)} `);
}

function against(base: Summary): string {
  return `/ ${base.policy}`;
}

/** Each group's name over the first of its columns. */
function groupLine(columns: readonly Column[], widths: readonly number[]): string {
  let text = "";
  let position = 0;
  columns.forEach(({ group, title }, index) => {
    const width = widths[index] ?? 0;
    const startOfTitle = position + 1 + width - title.length - 1;
    if (group !== "" && columns[index - 1]?.group !== group) text = text.padEnd(startOfTitle) + group;
    position += 1 + width;
  });
  return text;
}

function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |\n`;
  return line(head) + line(head.map((_, index) => (index === 0 ? "---" : "---:"))) + rows.map(line).join("");
}

function markdownName(name: string): string {
  return `\`${name.replaceAll("`", "'").replaceAll("|", "\\|")}\``;
}
