import { optionsOf } from "./chart.js";
import { data, plots, view } from "./plots.js";
import { element } from "./show.js";

/** Plots on the page, by name. @type {Map<string, uPlot>} */
const drawn = new Map();

/** @param {string} name of the plot */
function draw(name) {
  const place = document.querySelector(`[data-plot="${name}"]`);
  const make = plots[name];
  if (!(place instanceof HTMLElement) || make === undefined) return;
  drawn.get(name)?.destroy();
  drawn.delete(name);
  place.replaceChildren();
  const plot = make();
  if (plot.at.length === 0 || plot.curves.length === 0) {
    place.append(element("div", "none", "Nothing to show"));
    return;
  }
  const values = /** @type {uPlot.AlignedData} */ (
    /** @type {unknown} */ ([plot.at, ...plot.curves.map((curve) => curve.values)])
  );
  drawn.set(name, new uPlot(optionsOf(plot, place), values, place));
}

function drawAll() {
  for (const name of Object.keys(plots)) draw(name);
}

/** Brings everything in line with which policies are shown. */
function applyShown() {
  for (const button of document.querySelectorAll("[data-toggle]")) {
    const policy = Number(button.getAttribute("data-toggle"));
    if (!Number.isNaN(policy)) button.setAttribute("aria-pressed", String(view.isShown[policy]));
  }
  for (const part of document.querySelectorAll("[data-policy]")) {
    part.classList.toggle("is-off", !view.isShown[Number(part.getAttribute("data-policy"))]);
  }
  for (const [name, chart] of drawn) {
    plots[name]?.().curves.forEach(({ policy }, index) => {
      if (policy !== undefined) chart.setSeries(index + 1, { show: view.isShown[policy] === true });
    });
  }
}

/** Lets the pointed policy stand out. */
function applyPointed() {
  for (const part of document.querySelectorAll("[data-policy]")) {
    const policy = Number(part.getAttribute("data-policy"));
    part.classList.toggle("is-dim", view.pointed >= 0 && policy !== view.pointed);
  }
  for (const [name, chart] of drawn) {
    const curves = plots[name]?.().curves ?? [];
    if (curves[0]?.policy === undefined) continue;
    const index = curves.findIndex(({ policy }) => policy === view.pointed);
    chart.setSeries(index < 0 ? null : index + 1, { focus: true });
  }
}

function listenToLegend() {
  for (const button of document.querySelectorAll("[data-toggle]")) {
    const policy = Number(button.getAttribute("data-toggle"));
    if (Number.isNaN(policy)) {
      button.addEventListener("click", () => show(data.policies.map(() => true)));
      continue;
    }
    button.addEventListener("click", () => show(view.isShown.map((is, index) => (index === policy ? !is : is))));
    button.addEventListener("dblclick", () => show(view.isShown.map((_, index) => index === policy)));
    button.addEventListener("mouseenter", () => point(policy));
    button.addEventListener("mouseleave", () => point(-1));
  }
}

/** @param {boolean[]} isShown */
function show(isShown) {
  view.isShown = isShown;
  applyShown();
}

/** @param {number} policy -1: none */
function point(policy) {
  view.pointed = policy >= 0 && view.isShown[policy] ? policy : -1;
  applyPointed();
}

function listenToChoices() {
  const parts = [...document.querySelectorAll("[data-part]")];
  for (const part of parts) {
    part.addEventListener("click", () => {
      view.isTail = part.getAttribute("data-part") === "tail";
      for (const other of parts) other.setAttribute("aria-pressed", String(other === part));
      for (const { latency } of data.distributions) draw(latency);
    });
  }
  const metrics = (data.sweep?.metrics ?? []).map(({ title }, index) => ({ title, index })).slice(1);
  listenToSelect("metric", metrics, view.metric, (index) => {
    view.metric = index;
    draw("metric");
  });
  const policies = data.policies
    .map((title, index) => ({ title, index }))
    .filter(({ index }) => data.timeline.policies[index]?.length);
  listenToSelect("policy", policies, view.policy, (index) => {
    view.policy = index;
    for (const name of ["kvPercent", "running", "waiting", "held"]) draw(name);
  });
}

/**
 * @param {string} id
 * @param {{ title: string, index: number }[]} choices
 * @param {number} chosen
 * @param {(index: number) => void} choose
 */
function listenToSelect(id, choices, chosen, choose) {
  const select = document.getElementById(id);
  if (!(select instanceof HTMLSelectElement)) return;
  select.append(...choices.map(({ title, index }) => new Option(title, String(index), false, index === chosen)));
  select.addEventListener("change", () => choose(Number(select.value)));
}

/** Plots are as wide as their places, whatever the window does. */
function followSizes() {
  const observer = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const chart = drawn.get(target.getAttribute("data-plot") ?? "");
      if (target instanceof HTMLElement && chart !== undefined && chart.width !== target.clientWidth) {
        chart.setSize({ width: target.clientWidth, height: target.clientHeight });
      }
    }
  });
  for (const place of document.querySelectorAll("[data-plot]")) observer.observe(place);
}

drawAll();
listenToLegend();
listenToChoices();
followSizes();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
