/**
 * Looks of the report's page. The eight colours of policies are told apart under the common colour blindnesses
 * (after Okabe and Ito, darkened on white and lightened on black).
 */
export const PAGE_CSS = `
:root {
  --paper: #fbfbfa; --card: #ffffff; --ink: #1c2024; --faint: #687076; --rule: #e3e5e8; --best: #e3f1ea; --grid: #eceef0;
  --policy-0: #0072b2; --policy-1: #d55e00; --policy-2: #009e73; --policy-3: #b8558c;
  --policy-4: #c98a00; --policy-5: #3aa0dc; --policy-6: #5d4bb0; --policy-7: #6f7780;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #121416; --card: #1a1d20; --ink: #e8eaec; --faint: #989fa6; --rule: #2d3236; --best: #17382b; --grid: #24282c;
    --policy-0: #4aa8e8; --policy-1: #f0803c; --policy-2: #2cc79b; --policy-3: #e08bbd;
    --policy-4: #f0bd3d; --policy-5: #9ad7fa; --policy-6: #a898f5; --policy-7: #a5adb5;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif;
}
header, main, nav > * { max-width: 1480px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 24px; }
.kind { margin: 0; color: var(--faint); font-size: 13px; }
h1 { margin: 0 0 12px; font-size: 24px; line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin: 0 0 8px; font-size: 17px; display: flex; align-items: center; gap: 12px; flex-wrap: wrap; }
dl { display: flex; flex-wrap: wrap; gap: 6px 28px; margin: 0; }
dl > div { min-width: 0; }
dt { color: var(--faint); font-size: 12px; }
dd { margin: 0; font-weight: 600; overflow-wrap: anywhere; }
pre {
  margin: 14px 0; padding: 9px 12px; background: var(--card); border: 1px solid var(--rule); border-radius: 6px;
  white-space: pre-wrap; overflow-wrap: anywhere; font-size: 12.5px;
}
nav { position: sticky; top: 0; z-index: 20; background: var(--paper); border-bottom: 1px solid var(--rule); padding: 8px 0; }
nav > div { display: flex; flex-wrap: wrap; gap: 6px; }
nav p { margin: 4px auto 0; color: var(--faint); font-size: 12px; }
button, select {
  font: inherit; color: inherit; background: var(--card); border: 1px solid var(--rule); border-radius: 6px; padding: 3px 9px;
  cursor: pointer;
}
button:hover, select:hover { border-color: var(--faint); }
nav button { display: inline-flex; align-items: center; gap: 7px; }
nav button[aria-pressed="false"] { opacity: .45; text-decoration: line-through; }
.swatch { width: 22px; height: 8px; flex: none; }
.swatch line { stroke-width: 3; }
.switch { display: inline-flex; font-size: 13px; font-weight: 400; }
.switch button { border-radius: 0; }
.switch button:first-child { border-radius: 6px 0 0 6px; }
.switch button:last-child { border-radius: 0 6px 6px 0; border-left: 0; }
.switch button[aria-pressed="true"] { background: var(--ink); color: var(--paper); border-color: var(--ink); }
select { font-size: 13px; font-weight: 600; }
section { margin: 26px 0; }
.note { margin: 4px 0 8px; color: var(--faint); font-size: 12.5px; }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--rule); border-radius: 8px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: 4px 8px; text-align: right; white-space: nowrap; vertical-align: top; }
thead th { color: var(--faint); font-weight: 500; font-size: 12px; line-height: 1.25; vertical-align: bottom; }
thead th[scope="colgroup"] { text-align: left; font-weight: 600; color: var(--ink); }
tbody tr { border-top: 1px solid var(--rule); }
th[scope="row"], thead tr > :first-child { text-align: left; position: sticky; left: 0; background: var(--card); }
th[scope="row"] { font-weight: 600; }
th[scope="row"] .swatch { margin-right: 8px; vertical-align: 1px; }
.start { border-left: 1px solid var(--rule); }
td.best { background: var(--best); }
td small { display: block; color: var(--faint); font-size: 11px; line-height: 1.2; font-weight: 400; }
figure { margin: 0; padding: 12px; background: var(--card); border: 1px solid var(--rule); border-radius: 8px; min-width: 0; }
figcaption { font-weight: 600; font-size: 13px; margin-bottom: 6px; }
.plots, .bars { display: grid; gap: 14px; }
.three { grid-template-columns: repeat(auto-fit, minmax(min(360px, 100%), 1fr)); }
.two { grid-template-columns: repeat(auto-fit, minmax(min(460px, 100%), 1fr)); }
.bars { grid-template-columns: repeat(auto-fit, minmax(min(330px, 100%), 1fr)); }
.bar { display: grid; grid-template-columns: 10em 1fr 4em; gap: 8px; align-items: center; font-size: 12.5px; line-height: 1.7; }
.bar > span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.bar > i { display: block; background: var(--grid); border-radius: 3px; height: 11px; }
.bar > i > i { display: block; height: 100%; border-radius: 3px; background: var(--color); }
.bar > i > .dashed { background: repeating-linear-gradient(90deg, var(--color) 0 6px, transparent 6px 9px); }
.bar > b { text-align: right; font-variant-numeric: tabular-nums; font-weight: 600; }
.capacities { margin: 0 0 12px; }
.capacities dt { display: flex; align-items: center; gap: 7px; }
.capacities dd { font-size: 18px; }
[data-plot] { position: relative; height: 250px; }
[data-plot] .none { color: var(--faint); padding-top: 100px; text-align: center; }
.is-off { display: none; }
.is-dim { opacity: .3; }
.u-select { background: rgb(128 128 128 / 18%); }
.u-hz .u-cursor-x, .u-vt .u-cursor-y { border-right-color: var(--faint); }
.tip {
  position: absolute; z-index: 10; pointer-events: none; padding: 7px 10px; background: var(--card); color: var(--ink);
  border: 1px solid var(--rule); border-radius: 6px; box-shadow: 0 4px 14px rgb(0 0 0 / 18%); font-size: 12px; white-space: nowrap;
}
.tip div { display: grid; grid-template-columns: 14px auto minmax(48px, auto); gap: 6px; align-items: center; }
.tip div.near { font-weight: 700; }
.tip i { height: 3px; border-radius: 2px; }
.tip b { text-align: right; font-variant-numeric: tabular-nums; }
.tip p { margin: 0 0 3px; color: var(--faint); }
@media print { nav { position: static; } nav p { display: none; } section { break-inside: avoid; } }
`;
