import { type Cell, COLUMNS, type Column, cellsOf, comparisonOf } from "./columns.ts";
import { PAGE_CSS } from "./page-css.ts";
import { pageData } from "./page-data.ts";
import type { Report } from "./report.ts";
import { type Summary, summarize } from "./summary.ts";
import { CAPACITY_GOODPUT, capacitiesOf } from "./sweep.ts";

/** What a page carries inside itself, as texts: the files are read where files can be read. */
export interface PageAssets {
  /** `uplot/dist/uPlot.iife.min.js`. */
  readonly plotJs: string;
  /** `uplot/dist/uPlot.min.css`. */
  readonly plotCss: string;
  /** The texts of `PAGE_FILES`, in their order. */
  readonly pageModules: readonly string[];
}

/** Modules of the page's own script, relative to this file; each comes after those it imports. */
export const PAGE_FILES: readonly string[] = ["page/show.js", "page/plots.js", "page/chart.js", "page/page.js"];

/**
 * A report as one HTML file. It asks for nothing from any network, and says so to the browser: a page that somebody
 * sends you must not call home.
 */
export function renderHtml(report: Report, assets: PageAssets): string {
  const summaries = report.results.map((result) => summarize(result, report.slo));
  const data = pageData(report);
  const [first] = [...summaries, ...report.sweep.map(({ summary }) => summary)];
  const title = first === undefined ? "evenkeel simulate" : `${first.workload} on ${first.fleet}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<style>${styleText(assets.plotCss)}\n${PAGE_CSS}</style>
</head>
<body>
<header>
<p class="kind">evenkeel simulate</p>
<h1>${escapeHtml(title)}</h1>
${settingsList(report)}
<pre><code>${escapeHtml(report.command)}</code></pre>
</header>
${legend(data.policies)}
<main>
${summaries.length === 0 ? "" : summarySections(report, summaries, data.policies)}
${report.sweep.length === 0 ? "" : sweepSection(report, data.policies)}
${summaries.length === 0 ? "" : TIME_SECTIONS}
</main>
<script type="application/json" id="data">${jsonInScript(data)}</script>
<script>${scriptText(assets.plotJs)}</script>
<script type="module">${scriptText(oneModule(assets.pageModules))}</script>
</body>
</html>
`;
}

function settingsList({ settings, slo }: Report): string {
  const shown = { ...settings, SLO: `TTFT ${slo.ttftMs} ms, TPOT ${slo.tpotMs} ms` };
  const items = Object.entries(shown).map(
    ([name, value]) => `<div><dt>${escapeHtml(name)}</dt><dd>${escapeHtml(value)}</dd></div>`,
  );
  return `<dl>${items.join("")}</dl>`;
}

function legend(policies: readonly string[]): string {
  const buttons = policies.map(
    (policy, index) =>
      `<button type="button" data-toggle="${index}" aria-pressed="true">${swatch(index)}${escapeHtml(policy)}</button>`,
  );
  return `<nav aria-label="Policies"><div>${buttons.join("")}<button type="button" data-toggle="all">All</button></div>
<p>Click: show or hide. Double click: this one alone. Drag in a plot: zoom; double click there: back.</p></nav>`;
}

/** The line of a policy as plots draw it: 8 colours, then the same ones dashed. */
function swatch(index: number): string {
  return `<svg class="swatch" viewBox="0 0 22 8" aria-hidden="true"><line x1="1" y1="4" x2="21" y2="4" style="stroke:var(--policy-${index % 8})"${index < 8 ? "" : ` stroke-dasharray="${index < 16 ? "6 4" : "2 3"}"`}/></svg>`;
}

function summarySections(report: Report, summaries: readonly Summary[], policies: readonly string[]): string {
  const indexOf = (summary: Summary): number => policies.indexOf(summary.policy);
  const bars = BARS.map((bar) => barChart(bar, summaries, indexOf));
  return `<section><h2>Summary</h2>${summaryTable(report, summaries, indexOf)}</section>
<section><h2>Distributions <span class="switch" role="group" aria-label="Part of the distributions"><button type="button" data-part="whole" aria-pressed="true">all requests</button><button type="button" data-part="tail" aria-pressed="false">slowest 10 %</button></span></h2>
<p class="note">Share of requests that were at least this fast. Higher and further left is better.</p>
<div class="plots three"><figure><figcaption>Time to first token</figcaption><div data-plot="ttftMs"></div></figure>
<figure><figcaption>Time per output token</figcaption><div data-plot="tpotMs"></div></figure>
<figure><figcaption>End to end</figcaption><div data-plot="e2eMs"></div></figure></div></section>
<section><h2>Side by side</h2><div class="bars">${bars.join("")}</div></section>`;
}

function summaryTable(report: Report, summaries: readonly Summary[], indexOf: (summary: Summary) => number): string {
  const base = summaries.find(({ policy }) => policy === report.base);
  const cells = COLUMNS.map((column) => cellsOf(column, summaries));
  const titles = COLUMNS.map(
    ({ title, meaning, group }, index) =>
      `<th scope="col" title="${escapeHtml(meaning)}"${startsGroup(index) ? ' class="start"' : ""}>${group === "" ? escapeHtml(title).replace(" ", "<br>") : escapeHtml(title)}</th>`,
  );
  const rows = summaries.map((summary, row) => {
    const values = COLUMNS.map((column, index) =>
      tableCell(cells[index]?.[row], base === undefined ? "" : comparisonOf(column, summary, base), startsGroup(index)),
    );
    return `<tr data-policy="${indexOf(summary)}"><th scope="row">${swatch(indexOf(summary))}${escapeHtml(summary.policy)}</th>${values.join("")}</tr>`;
  });
  const note = base === undefined ? "" : ` Small: against ${escapeHtml(base.policy)}.`;
  return `<div class="scroll"><table><thead><tr><td></td>${groupHeads()}</tr><tr><th scope="col">policy</th>${titles.join("")}</tr></thead><tbody>${rows.join("")}</tbody></table></div>
<p class="note">Highlighted: best of its column.${note}</p>`;
}

function startsGroup(index: number): boolean {
  const group = COLUMNS[index]?.group;
  return group === "" ? COLUMNS[index - 1]?.group !== "" : COLUMNS[index - 1]?.group !== group;
}

function groupHeads(): string {
  const starts = COLUMNS.map((_, index) => index).filter(startsGroup);
  return starts
    .map((start, position) => {
      const span = (starts[position + 1] ?? COLUMNS.length) - start;
      const group = COLUMNS[start]?.group ?? "";
      return group === ""
        ? `<td class="start" colspan="${span}"></td>`
        : `<th class="start" scope="colgroup" colspan="${span}">${escapeHtml(group)}</th>`;
    })
    .join("");
}

function tableCell(cell: Cell | undefined, comparison: string, isStart: boolean): string {
  const classes = [...(cell?.isBest ? ["best"] : []), ...(isStart ? ["start"] : [])].join(" ");
  const text = escapeHtml(cell?.text ?? "");
  return `<td${classes === "" ? "" : ` class="${classes}"`}>${cell?.isBest ? `<b>${text}</b>` : text}${comparison === "" ? "" : `<small>${comparison}</small>`}</td>`;
}

/** Figures that are compared as bars: the title of their column, what to call them, and the end of the axis. */
const BARS: readonly { readonly title: string; readonly caption: string; readonly whole?: number }[] = [
  { title: "good %", caption: "Goodput, %", whole: 100 },
  { title: "tok/s", caption: "Output tokens per second" },
  { title: "hit %", caption: "Prompt tokens found in caches, %", whole: 100 },
  { title: "work", caption: "Work of the busiest endpoint / mean" },
  { title: "hold s", caption: "Longest wait at the balancer, s" },
  { title: "preempt", caption: "Preemptions" },
];

function barChart(
  { title, caption, whole }: (typeof BARS)[number],
  summaries: readonly Summary[],
  indexOf: (summary: Summary) => number,
): string {
  const column = COLUMNS.find((candidate) => candidate.title === title) as Column;
  const cells = cellsOf(column, summaries);
  const values = summaries.map((summary) => column.read(summary) ?? 0);
  const end = whole ?? (Math.max(...values) || 1);
  const rows = summaries.map((summary, row) => {
    const width = ((100 * (values[row] ?? 0)) / end).toFixed(1);
    return `<div class="bar" data-policy="${indexOf(summary)}"><span>${escapeHtml(summary.policy)}</span><i><i style="width:${width}%;--color:var(--policy-${indexOf(summary) % 8})"${indexOf(summary) < 8 ? "" : ' class="dashed"'}></i></i><b>${escapeHtml(cells[row]?.text ?? "")}</b></div>`;
  });
  return `<figure><figcaption>${caption}</figcaption>${rows.join("")}</figure>`;
}

function sweepSection({ sweep }: Report, policies: readonly string[]): string {
  const isRate = sweep[0]?.variable === "rate";
  const capacities = capacitiesOf(sweep).map(({ policy, value }) => {
    const index = policies.indexOf(policy);
    const text = value === undefined ? "none" : `${isRate ? "x" : ""}${value}`;
    return `<div data-policy="${index}"><dt>${swatch(index)}${escapeHtml(policy)}</dt><dd>${text}</dd></div>`;
  });
  const goal = `${100 * CAPACITY_GOODPUT} % goodput`;
  return `<section><h2>${isRate ? "Capacity" : "How many endpoints"}</h2>
<p class="note">${isRate ? `Largest rate with ${goal}` : `Fewest endpoints with ${goal}`}, of those simulated:</p>
<dl class="capacities">${capacities.join("")}</dl>
<div class="plots two"><figure><figcaption>Goodput against ${isRate ? "rate" : "number of endpoints"}</figcaption><div data-plot="goodput"></div></figure>
<figure><figcaption><select id="metric" aria-label="Figure"></select> against ${isRate ? "rate" : "number of endpoints"}</figcaption><div data-plot="metric"></div></figure></div></section>`;
}

const TIME_SECTIONS = `<section><h2>Fleet over time</h2>
<div class="plots two"><figure><figcaption>Running requests, all endpoints</figcaption><div data-plot="fleetRunning"></div></figure>
<figure><figcaption>Requests that wait, at engines and held at the balancer</figcaption><div data-plot="fleetWaiting"></div></figure></div></section>
<section><h2>Endpoints over time <select id="policy" aria-label="Policy"></select></h2>
<p class="note">One line per endpoint, the mean in bold. Point at a line to see whose it is.</p>
<div class="plots two"><figure><figcaption>KV cache in use</figcaption><div data-plot="kvPercent"></div></figure>
<figure><figcaption>Running</figcaption><div data-plot="running"></div></figure>
<figure><figcaption>Waiting at the engine</figcaption><div data-plot="waiting"></div></figure>
<figure><figcaption>Held at the balancer</figcaption><div data-plot="held"></div></figure></div></section>`;

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** JSON in which nothing can end the script element it stands in, or open a comment there. */
function jsonInScript(value: unknown): string {
  return JSON.stringify(value).replaceAll("<", "\\u003c");
}

/** Code whose strings cannot end the script element it stands in. */
function scriptText(code: string): string {
  return code.replace(/<\/(?=script)/gi, "<\\/");
}

/** A single file has no other to import: its modules become one, where each sees the names of those before. */
function oneModule(modules: readonly string[]): string {
  return modules
    .join("\n")
    .replace(/^import [^;]*;\n/gm, "")
    .replace(/^export /gm, "");
}

function styleText(css: string): string {
  return css.replace(/<\/(?=style)/gi, "<\\/");
}
