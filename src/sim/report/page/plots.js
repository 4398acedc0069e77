import { brief, byId, duration, endpointColor, percent, variable } from "./show.js";

/** @import { EndpointQuantity, PageData } from "../page-data.ts" */

/** @type {PageData} */
export const data = JSON.parse(byId("data").textContent ?? "");

/** What the reader chose to see. */
export const view = {
  isShown: data.policies.map(() => true),
  /** Policy under the pointer, or -1. */
  pointed: -1,
  isTail: false,
  metric: 1,
  policy: Math.max(
    0,
    data.timeline.policies.findIndex((endpoints) => endpoints.length > 0),
  ),
};

/**
 * A curve in a plot.
 * @typedef {object} Curve
 * @property {string} name
 * @property {string} color
 * @property {number[]} dash empty: a plain line
 * @property {number} width
 * @property {number | undefined} policy undefined: the legend does not switch it
 * @property {boolean} isShown
 * @property {readonly (number | null)[]} values
 */

/**
 * What a plot shows.
 * @typedef {object} Plot
 * @property {readonly number[]} at
 * @property {Curve[]} curves
 * @property {(value: number) => string} formatX
 * @property {(value: number) => string} formatY
 * @property {boolean} [isLogX]
 * @property {boolean} [isLogY]
 * @property {[number, number]} [rangeY] undefined: from 0 up to the largest value
 * @property {number | undefined} [limitX] where to draw a limit across
 * @property {number} [limitY]
 * @property {boolean} [hasPoints] mark each value
 * @property {string} [together] plots of one name share a cursor
 */

/** How to make each plot of the page, by the name in its element. @type {Record<string, () => Plot>} */
export const plots = {
  ttftMs: () => distributionPlot("ttftMs"),
  tpotMs: () => distributionPlot("tpotMs"),
  e2eMs: () => distributionPlot("e2eMs"),
  goodput: () => sweepPlot(0),
  metric: () => sweepPlot(view.metric),
  fleetRunning: () => fleetPlot(["running"]),
  fleetWaiting: () => fleetPlot(["waiting", "held"]),
  kvPercent: () => endpointPlot("kvPercent"),
  running: () => endpointPlot("running"),
  waiting: () => endpointPlot("waiting"),
  held: () => endpointPlot("held"),
};

/** @param {string} latency @returns {Plot} */
function distributionPlot(latency) {
  const found = data.distributions.find((distribution) => distribution.latency === latency);
  return {
    at: found?.atMs ?? [],
    curves: policyCurves((policy) => found?.percents[policy] ?? []),
    formatX: duration,
    formatY: percent,
    isLogX: true,
    rangeY: view.isTail ? [90, 100] : [0, 100],
    limitX: found?.limitMs,
  };
}

/** @param {number} index @returns {Plot} */
function sweepPlot(index) {
  const metric = data.sweep?.metrics[index];
  const isPercent = metric?.unit === "%";
  return {
    at: data.sweep?.values ?? [],
    curves: policyCurves((policy) => metric?.values[policy] ?? []),
    formatX: (value) => (data.sweep?.variable === "rate" ? `x${brief(value)}` : brief(value)),
    formatY: isPercent ? percent : metric?.unit === "ms" ? duration : (value) => brief(value),
    isLogY: metric?.unit === "ms",
    hasPoints: true,
    ...(isPercent ? { rangeY: [0, 100] } : {}),
    ...(index === 0 && data.sweep !== undefined ? { limitY: data.sweep.capacityPercent } : {}),
  };
}

/** @param {EndpointQuantity[]} quantities summed @returns {Plot} */
function fleetPlot(quantities) {
  return {
    ...overTime(),
    together: "fleet",
    curves: policyCurves((policy) => {
      const endpoints = data.timeline.policies[policy] ?? [];
      if (endpoints.length === 0) return [];
      return sums(quantities.flatMap((quantity) => endpoints.map((endpoint) => endpoint[quantity])));
    }),
  };
}

/** @param {EndpointQuantity} quantity @returns {Plot} */
function endpointPlot(quantity) {
  const endpoints = data.timeline.policies[view.policy] ?? [];
  const lines = endpoints.map((endpoint) => endpoint[quantity]);
  const mean = sums(lines).map((sum) => (sum === null ? null : sum / lines.length));
  const curves = lines.map((values, index) => ({
    name: data.timeline.endpoints[index] ?? "",
    color: endpointColor(index, lines.length),
    dash: [],
    width: 1.25,
    policy: undefined,
    isShown: true,
    values,
  }));
  curves.push({
    name: "mean",
    color: variable("--ink"),
    dash: [],
    width: 2.5,
    policy: undefined,
    isShown: true,
    values: mean,
  });
  const isPercent = quantity === "kvPercent";
  return {
    ...overTime(),
    together: "endpoints",
    curves,
    formatY: isPercent ? percent : (value) => brief(value),
    ...(isPercent ? { rangeY: [0, 100] } : {}),
  };
}

/** @returns {Pick<Plot, "at" | "formatX" | "formatY">} */
function overTime() {
  return { at: data.timeline.atS, formatX: (value) => `${brief(value)} s`, formatY: (value) => brief(value) };
}

/** @param {(policy: number) => readonly (number | null)[]} valuesOf empty: it has no curve here @returns {Curve[]} */
function policyCurves(valuesOf) {
  return data.policies.flatMap((name, policy) => {
    const values = valuesOf(policy);
    if (values.length === 0) return [];
    const dash = [[], [8, 5], [2, 4]][Math.floor(policy / 8)] ?? [2, 4];
    return [
      {
        name,
        color: variable(`--policy-${policy % 8}`),
        dash,
        width: 2,
        policy,
        isShown: view.isShown[policy] === true,
        values,
      },
    ];
  });
}

/** @param {readonly (readonly (number | null)[])[]} lists @returns {(number | null)[]} null where all are */
function sums(lists) {
  return data.timeline.atS.map((_, index) => {
    const known = lists.map((list) => list[index] ?? null).filter((value) => value !== null);
    return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
  });
}
